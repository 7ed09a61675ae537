import { expect } from "chai";
import { brokenBy } from "../../../scripts/tests/changed.ts";

describe("the test files that a change can break", () => {
  const sources = new Map([
    ["src/crdt/merge.ts", 'import { before } from "./clock.ts";'],
    ["src/crdt/clock.ts", ""],
    ["src/web/page.ts", 'readFileSync(join(folder, "web-page.js"))'],
    ["test/support/program.ts", ""],
    [
      "test/unit/crdt/merge.test.ts",
      'import { merge } from "#crdt/merge.ts";\nconst late = await import("./other.ts");',
    ],
    ["test/unit/crdt/clock.test.ts", 'import { clock } from "../../../src/crdt/clock.ts";'],
    ["test/unit/web/page.test.ts", 'import { page } from "#web/page.ts";'],
    ["test/integration/cli/run.test.ts", 'import { kcoreEnvironment } from "#support/program.ts";'],
  ]);

  it("import the changed file, also indirectly", () => {
    expect(brokenBy(["src/crdt/clock.ts"], sources)).to.include.members([
      "test/unit/crdt/merge.test.ts",
      "test/unit/crdt/clock.test.ts",
    ]);
    expect(brokenBy(["src/crdt/merge.ts"], sources)).not.to.include("test/unit/crdt/clock.test.ts");
    expect(brokenBy(["test/unit/crdt/other.ts"], new Map([...sources, ["test/unit/crdt/other.ts", ""]]))).to.include(
      "test/unit/crdt/merge.test.ts",
    );
  });

  it("include every test that starts kcore as a process if a source changed", () => {
    expect(brokenBy(["src/crdt/clock.ts"], sources)).to.include("test/integration/cli/run.test.ts");
    expect(brokenBy(["test/unit/crdt/clock.test.ts"], sources)).to.deep.equal(["test/unit/crdt/clock.test.ts"]);
  });

  it("include those that reach a changed script by its name in a string of a source", () =>
    expect(brokenBy(["src/web/web-page.js"], sources)).to.include("test/unit/web/page.test.ts"));
});
