import { expect } from "chai";
import { registry } from "#engine/modules/registry.ts";
import { cellOf, noneOf, readPlatforms } from "#support/platforms.ts";
import { samples } from "../../lab/catalogue/all.ts";

const rows = readPlatforms();

describe("the table of platforms in docs/modules.md", () => {
  it("has a row for each module, in the registry's order", () => {
    expect([...rows.keys()]).to.deep.equal([...registry.keys()].toSorted());
  });

  for (const [module, row] of rows) {
    const own = samples
      .filter((sample) => sample.module === module)
      .flatMap(({ busybox }) => (busybox === "left out" ? [] : [busybox]));
    it(`says of ${module} what the lab holds true`, () => {
      expect(row.debian).to.equal(own.length > 0 ? "converges" : "its own test");
      if (own.length > 0)
        expect(row.busybox).to.equal(
          cellOf(own.map((busybox) => (busybox === "converges" ? busybox : noneOf(busybox.forWantOf)))),
        );
    });
  }
});
