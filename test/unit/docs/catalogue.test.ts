import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { registry } from "#engine/modules/registry.ts";
import { readCosts, readUncounted } from "#support/costs.ts";
import { cellOf, noneOf, readPlatforms } from "#support/platforms.ts";
import { samples as inContainers } from "../../lab/catalogue/all.ts";
import { samples as inMachines } from "../../lab/catalogue/vm.ts";

const counted = [...inContainers, ...inMachines].filter(({ helps = false }) => !helps);
const uncounted = readUncounted();

describe("the catalogue of modules in the lab", () => {
  it("has a sample of each module, or docs/performance.md names the test that stands for it", () => {
    const tried = new Set(counted.map(({ module }) => module));
    expect([...registry.keys()].filter((name) => !tried.has(name)).toSorted()).to.deep.equal(
      [...uncounted.keys()].toSorted(),
    );
    for (const file of uncounted.values())
      expect(existsSync(join(import.meta.dirname, "../../..", file)), file).to.equal(true);
  });

  it("counts each sample's processes, and changes where something can be changed", () => {
    const costs = readCosts();
    expect([...costs.keys()].toSorted()).to.deep.equal(counted.map(({ id }) => id).toSorted());
    for (const { id, drift } of counted) expect(Number.isNaN(costs.get(id)?.changed), id).to.equal(drift === undefined);
  });
});

const rows = readPlatforms();

describe("the table of platforms in docs/modules.md", () => {
  it("has a row for each module, in the registry's order", () =>
    expect([...rows.keys()]).to.deep.equal([...registry.keys()].toSorted()));

  for (const [module, row] of rows) {
    const own = inContainers.filter((sample) => sample.module === module).flatMap(({ busybox }) => busybox ?? []);
    it(`says of ${module} what the lab holds true`, () => {
      const isTried = [...inContainers, ...inMachines].some((sample) => sample.module === module && !sample.helps);
      expect(row.debian).to.equal(isTried ? "converges" : "its own test");
      if (own.length > 0)
        expect(row.busybox).to.equal(
          cellOf(own.map((busybox) => (busybox === "converges" ? busybox : noneOf(busybox.forWantOf)))),
        );
    });
  }
});
