import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { renewPage } from "../../../scripts/gen-security.ts";

describe("docs/security.md", () => {
  it("S-16: shows the methods and roles that the controllers obey", () => {
    const page = readFileSync(join(import.meta.dirname, "../../../docs/security.md"), "utf8");
    // Not a diff of 40 rows: the command that mends it.
    expect(renewPage(page) === page, "npm run gen:security").to.equal(true);
  });
});
