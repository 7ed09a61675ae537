import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";
import { duplicateNames, readFaults, whyNot, type Fault } from "../../scripts/planted/faults.ts";
import { Copy } from "../../scripts/planted/plant.ts";

const root = join(import.meta.dirname, "../..");
const faults = readFaults(root);

/** `npm run test:planted` plants the faults; this test compares their lists with the sources. */
describe("the lists of planted faults", () => {
  it("have at least 150 faults with different names", () => {
    expect(faults.length).to.be.at.least(150);
    expect(duplicateNames(faults)).to.deep.equal([]);
  });

  it("quote text that occurs in its file exactly once, and name existing tests", () =>
    expect(faults.flatMap((fault) => whyNot(fault, root) ?? [])).to.deep.equal([]));
});

describe("planting a fault", () => {
  let tree: TempDir;
  let copy: Copy;
  const fault: Fault = {
    area: "small",
    name: "small",
    why: "two are more than one",
    file: "rule.ts",
    from: "a > b",
    to: "a >= b",
    tests: ["test/rule.test.ts"],
  };
  const write = (path: string, text: string): void => writeFileSync(join(tree.path, path), text);

  before(async () => {
    tree = await makeTempDir("planted-tree");
    for (const folder of ["src", "test"]) mkdirSync(join(tree.path, folder));
    symlinkSync(join(root, "node_modules"), join(tree.path, "node_modules"));
    write("package.json", '{ "type": "module" }');
    write("src/rule.ts", "export const isMore = (a: number, b: number): boolean => a > b; // a rule\n");
    write(
      "test/rule.test.ts",
      'import { isMore } from "../src/rule.ts";\nit("tells one from two", () => {\n  if (isMore(1, 1) || !isMore(2, 1)) throw new Error("no");\n});\n',
    );
    write("test/red.test.ts", 'it("is red", () => {\n  throw new Error("always");\n});\n');
    copy = await Copy.make(tree.path);
  });
  after(async () => {
    await copy?.remove();
    await tree?.remove();
  });

  it("names the test that finds the fault, and leaves the tree unchanged", async () => {
    const before = readFileSync(join(tree.path, "src/rule.ts"), "utf8");
    expect(await copy.plant(fault)).to.deep.include({ outcome: "found", said: "tells one from two" });
    expect(readFileSync(join(tree.path, "src/rule.ts"), "utf8")).to.equal(before);
  });

  it("reports a fault that no test finds", async () =>
    expect(await copy.plant({ ...fault, from: "a rule", to: "a law" })).to.include({ outcome: "not found" }));

  it("does not count tests that fail without the fault, nor faults that do not load", async () => {
    const { outcome } = await copy.plant({ ...fault, tests: ["test/red.test.ts"] });
    expect(outcome).to.equal("red before");
    expect(await copy.plant({ ...fault, to: "a >" })).to.include({ outcome: "does not apply" });
    expect(await copy.plant({ ...fault, from: "a < b" })).to.include({ outcome: "does not apply" });
  });
});
