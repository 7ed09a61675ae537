import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { renewPhases } from "../../../scripts/gen-phases.ts";

describe("docs/updates.md", () => {
  it("draws the phases of updates and nodes as the code has them", () => {
    const page = readFileSync(join(import.meta.dirname, "../../../docs/updates.md"), "utf8");
    expect(renewPhases(page) === page, "npm run gen:phases").to.equal(true);
  });
});
