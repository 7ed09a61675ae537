import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";

const folder = join(import.meta.dirname, "../..");
/** Forms of dependence on the machine's clock, or of a private time limit. */
const ties = [
  /expect\((?:performance|Date)\.now\(\) - \w+\)\.to\.be\.(?:below|lessThan|within|at\.most)/,
  /(?:this|\}\))\.timeout\([\d_]{1,7}\)/,
];

describe("a test of kcore", () => {
  it("compares nothing with the clock, and has no limit but the one of all", () => {
    const found = ["unit", "integration", "support"].flatMap((part) =>
      readdirSync(join(folder, part), { recursive: true, encoding: "utf8" })
        .filter((name) => name.endsWith(".ts"))
        .flatMap((name) => {
          const lines = readFileSync(join(folder, part, name), "utf8").split("\n");
          return lines.filter((line) => ties.some((tie) => tie.test(line))).map((line) => `${part}/${name}: ${line}`);
        }),
    );
    expect(found).to.deep.equal([]);
  });
});
