import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { renewPage } from "../../../scripts/gen-security.ts";

describe("docs/security.md", () => {
  it("S-16: shows the methods and roles that the controllers obey", () => {
    const page = readFileSync(join(import.meta.dirname, "../../../docs/security.md"), "utf8");
    // The failure shows the command that mends the page, not a diff of 40 rows.
    expect(renewPage(page) === page, "npm run gen:security").to.equal(true);
  });

  it("names for each thing that the compromised cannot do a test that there is", () => {
    const root = join(import.meta.dirname, "../../..");
    const page = readFileSync(join(root, "docs/security.md"), "utf8");
    const [, section = ""] = /^## Who can do what when compromised\n([^]*?)^## /m.exec(page) ?? [];
    const rows = section.split("\n").filter((line) => /^\| (?!-)/.test(line) && !line.includes("the test that tries"));
    expect(rows.length).to.be.greaterThan(30);
    for (const row of rows) {
      const [, file = "", words = ""] = /`(\S+)` \((.+)\) *\|$/.exec(row) ?? [];
      // Tests that share one deployment stand in files that a test file imports.
      const test = [".test.ts", ".ts"]
        .map((end) => join(root, "test", `${file}${end}`))
        .find((path) => existsSync(path));
      expect(titles(test ?? ""), row).to.include(words);
    }
  });
});

function titles(test: string): string {
  const found = (test === "" ? "" : readFileSync(test, "utf8")).matchAll(/\b(?:it|describe)\(\s*(["'`][^\n]*)/g);
  return [...found].map(([, title = ""]) => title).join("\n");
}
