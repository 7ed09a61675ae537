import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";

const folder = join(import.meta.dirname, "../../../docs/adr");
const read = (name: string): string => readFileSync(join(folder, name), "utf8");
const pages = readdirSync(folder).filter((name) => name !== "README.md");
const rows = read("README.md")
  .split("\n")
  .map((line) => /^- \[(\d{4})\]\((.+?)\) (.+)$/.exec(line))
  .filter((row) => row !== null)
  .map(([, number, file, title]) => ({ number, file, title }));

describe("docs/adr", () => {
  it("has a list of all decisions, each under its number once", () => {
    expect(rows.map(({ file }) => file)).to.deep.equal(pages.toSorted());
    expect(new Set(rows.map(({ number }) => number)).size).to.equal(rows.length);
  });

  for (const { number, file = "", title } of rows)
    it(`${file} has the form of all, and the title of the list`, () => {
      const text = read(file);
      expect(text).to.match(
        new RegExp(`^# ${number} [^\n]+\n\n\\*\\*Status\\.\\*\\* [^\n]+\n\n\\*\\*Context\\.\\*\\*`),
      );
      expect(file.startsWith(`${number}-`)).to.equal(true);
      expect(text.split("\n").slice(0, 3)).to.deep.equal([`# ${number} ${title}`, "", "**Status.** accepted"]);
      const parts = [...text.matchAll(/^\*\*(Status|Context|Decision|Consequences|Alternatives)\.\*\*/gm)];
      expect(parts.map(([, part]) => part)).to.deep.equal(
        "Status Context Decision Consequences Alternatives".split(" "),
      );
    });
});
