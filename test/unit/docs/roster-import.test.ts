import { expect } from "chai";
import { imported } from "#support/imported.ts";
import { readPages } from "#support/pages.ts";

const blocks = readPages()
  .flatMap((page) => page.blocks)
  .filter(({ page }) => page === "docs/rosters.md");
const after = (start: string): string => blocks.find(({ text }) => text.startsWith(start))?.text ?? "";

describe("the import that docs/rosters.md shows", () => {
  it("gives that roster, and leaves out what the page says", () => {
    const { text, leftOut } = imported(after("[web]"));
    expect(text.replace(/^#.*\n/, "")).to.equal(after('defaults:\n  identityFile: "~/.ssh/fleet"'));
    const shown = leftOut.map((line) => line.replace(/^(\d+) /, "inventory.ini:$1  left out: "));
    expect(shown.join("\n").trimEnd()).to.equal(after("inventory.ini:5").trimEnd());
  });
});
