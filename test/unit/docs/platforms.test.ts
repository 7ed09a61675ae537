import { expect } from "chai";
import { registry } from "#engine/modules/registry.ts";
import { cellOf, noneOf, readPlatforms } from "#support/platforms.ts";
import { samples } from "../../lab/catalogue/all.ts";
import { samples as inMachines } from "../../lab/catalogue/vm.ts";

const rows = readPlatforms();

describe("the table of platforms in docs/modules.md", () => {
  it("has a row for each module, in the registry's order", () =>
    expect([...rows.keys()]).to.deep.equal([...registry.keys()].toSorted()));

  for (const [module, row] of rows) {
    const own = samples.filter((sample) => sample.module === module).flatMap(({ busybox }) => busybox ?? []);
    it(`says of ${module} what the lab holds true`, () => {
      const isTried = [...samples, ...inMachines].some((sample) => sample.module === module && !sample.helps);
      expect(row.debian).to.equal(isTried ? "converges" : "its own test");
      if (own.length > 0)
        expect(row.busybox).to.equal(
          cellOf(own.map((busybox) => (busybox === "converges" ? busybox : noneOf(busybox.forWantOf)))),
        );
    });
  }
});
