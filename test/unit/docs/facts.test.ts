import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { factCatalogue } from "#engine/facts/catalogue.ts";
import { parseTargets } from "#engine/roster/target-syntax.ts";
import { root } from "#support/pages.ts";

const page = readFileSync(join(root, "docs/facts.md"), "utf8");
const [, names = "", targets = ""] = page.split(/^## .*$/m);

/** The cells of a page's table, without its heading. */
function rowsOf(text: string): readonly (readonly string[])[] {
  const lines = text.split("\n").filter((line) => line.startsWith("|"));
  return lines.slice(2).map((line) =>
    line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

describe("docs/facts.md", () => {
  it("has every fact of the catalogue, as it is", () => {
    const rows = factCatalogue.map(({ name, type, about, unit = "", source }) => [
      `\`${name}\``,
      type,
      about,
      unit,
      source,
    ]);
    expect(rowsOf(names)).to.deep.equal(rows);
  });

  it("shows terms that can be read", () => {
    const terms = rowsOf(targets).flatMap(([cell = ""]) =>
      Array.from(cell.matchAll(/`([^`]+)`/g), ([, term = ""]) => term),
    );
    const more = Array.from(targets.matchAll(/--on '([^']+)'|`(fact:[^`]+)`/g), ([, on, term]) => on ?? term ?? "");
    expect([terms.length > 7, more.length > 10]).to.deep.equal([true, true]);
    for (const term of [...terms, ...more]) expect(parseTargets(term), term).to.be.an("object");
  });

  it("says how many processes there are, as the test of facts.sh holds it", () => {
    const test = readFileSync(join(root, "test/unit/engine/facts/facts-sh.test.ts"), "utf8");
    expect(page).to.include("at most seven processes");
    expect(test).to.include("expect(gathered.processes).to.be.within(5, 7)");
  });
});
