import { expect } from "chai";
import { Catalogue } from "#support/catalogue.ts";
import { readCosts } from "#support/costs.ts";
import type { Sample } from "#support/sample.ts";
import { samples as each } from "./catalogue/all.ts";
import { samples as many } from "./catalogue/many.ts";

const samples: readonly Sample[] = [...each, ...many];

describe("all modules on containers", function () {
  this.timeout(900_000);
  let catalogue: Catalogue;

  before(async () => {
    catalogue = await Catalogue.open({
      packages: ["docker-registry", "git", "podman", "smartmontools"],
      nodes: [
        { name: "n1", kind: "debian", disks: ["128M", "96M"] },
        { name: "b1", kind: "busybox", disks: [] },
      ],
      samples: { n1: samples, b1: samples.filter(({ busybox }) => busybox === "converges") },
    });
  });
  after(() => catalogue?.close());

  it("make a state of a hundred steps", () => {
    expect(samples.length).to.be.at.least(100);
  });

  for (const node of ["n1", "b1"]) {
    it(`converge on ${node} as the dry run reports, and change nothing the second time`, () =>
      catalogue.expectConverges(node));

    it(`name on ${node} what another program changed, and correct it`, () => catalogue.expectMendsDrift(node));
  }

  it("start no more processes on n1 than docs/performance.md lists", async () => {
    expect(await catalogue.samplesAbove("n1", each, readCosts())).to.deep.equal([]);
  });

  for (const { id, module, refusal } of samples)
    if (refusal)
      it(`${id} refuses with ${refusal.code}`, async () => {
        if (refusal.before !== undefined) catalogue.shell("n1", refusal.before);
        const refused = await catalogue.runAlone("n1", { module, args: refusal.args });
        if (refusal.after !== undefined) catalogue.shell("n1", refusal.after);
        expect(refused.problem?.code, JSON.stringify(refused)).to.equal(refusal.code);
      });

  for (const { id, module, args, busybox } of each)
    if (typeof busybox === "object")
      it(`${id} reports on a BusyBox node that ${busybox.forWantOf} is missing`, async () => {
        const { problem, ...rest } = await catalogue.runAlone("b1", { module, args });
        expect(problem?.code, JSON.stringify(rest)).to.equal(busybox.refuses);
        expect(problem?.message).to.contain(busybox.forWantOf);
      });
});
