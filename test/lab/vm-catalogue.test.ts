import { expect } from "chai";
import { Catalogue } from "#support/catalogue.ts";
import { readCosts } from "#support/costs.ts";
import { samples } from "./catalogue/vm.ts";

describe("all modules that need a kernel of their own", function () {
  this.timeout(1_800_000); // the first run on a machine makes the images
  let catalogue: Catalogue;

  before(async () => {
    catalogue = await Catalogue.open({
      nodes: [{ name: "v1", kind: "vm", disks: ["160M", "64M"] }],
      samples: { v1: samples },
    });
  });
  after(() => catalogue?.close());

  it("converge as the dry run reports, and change nothing the second time", () => catalogue.expectConverges("v1"));

  it("name what another program changed, and correct it", () => catalogue.expectMendsDrift("v1"));

  it("start no more processes than docs/performance.md lists", async () => {
    expect(await catalogue.samplesAbove("v1", samples, readCosts())).to.deep.equal([]);
  });

  for (const { id, module, refusal } of samples)
    if (refusal)
      it(`${id} refuses with ${refusal.code}`, async () => {
        const refused = await catalogue.runAlone("v1", { module, args: refusal.args });
        expect(refused.problem?.code, JSON.stringify(refused)).to.equal(refusal.code);
      });
});
