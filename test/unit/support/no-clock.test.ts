import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";

const folder = join(import.meta.dirname, "../..");
/** Comparisons with the machine's clock, and time limits of a single test. */
const forbidden = [
  /expect\((?:performance|Date)\.now\(\) - \w+\)\.to\.be\.(?:below|lessThan|within|at\.most)/,
  /(?:this|\}\))\.timeout\([\d_]{1,7}\)/,
];

describe("kcore's tests", () => {
  it("compare nothing with the clock, and have only the common time limit", () => {
    const found = ["unit", "integration", "support"].flatMap((part) =>
      readdirSync(join(folder, part), { recursive: true, encoding: "utf8" })
        .filter((name) => name.endsWith(".ts"))
        .flatMap((name) => {
          const lines = readFileSync(join(folder, part, name), "utf8").split("\n");
          return lines
            .filter((line) => forbidden.some((form) => form.test(line)))
            .map((line) => `${part}/${name}: ${line}`);
        }),
    );
    expect(found).to.deep.equal([]);
  });
});
