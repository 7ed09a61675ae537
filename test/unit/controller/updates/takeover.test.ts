import { expect } from "chai";
import { takeOver } from "#controller/updates/takeover.ts";
import { nextEpoch, type UpdateRecords } from "#controller/updates/update-records.ts";
import { verifyStatement } from "#pki/statement.ts";
import { createTestCluster, type TestCluster } from "#support/cluster.ts";
import { KnownUpdates } from "#support/known-update.ts";
import { signOwner } from "#support/signed-update.ts";
import { SteppedRollout } from "#support/stepped-rollout.ts";

describe("a takeover", () => {
  let cluster: TestCluster;
  let known: KnownUpdates;
  let update: UpdateRecords;
  before(async () => (cluster = await createTestCluster()));
  after(() => cluster.remove());
  beforeEach(async () => {
    known = await new KnownUpdates().nodes("n1");
    update = await known.update(new SteppedRollout({ nodes: ["n1"] }).settle());
  });
  afterEach(() => known.stop());

  const take = (owner: string, epoch: number, by = cluster, name = "u"): Promise<unknown> =>
    takeOver(
      {
        ...known.parts,
        clock: Date.now,
        verify: (signed, now) => verifyStatement(signed, { ...cluster.authority, now }),
      },
      known.parts.index.read("u") as UpdateRecords,
      { ownership: signOwner(by, name, { owner, epoch }) },
      "operator ann",
    ).catch((error: unknown) => error);
  const owner = () => known.parts.index.read("u")?.owner;

  it("makes the owner that the bastion signed, whichever controller is asked, and may be repeated", async () => {
    expect(await take("c2", 2)).to.deep.equal({ owner: "c2", epoch: 2 });
    expect(owner()).to.include({ owner: "c2", epoch: 2, by: "operator ann" });
    const { signed } = owner() ?? {};
    expect(await take("c2", 2)).to.deep.equal({ owner: "c2", epoch: 2 });
    expect(owner()?.signed).to.equal(signed);
  });

  for (const [what, epoch] of [
    ["of the present epoch", 2],
    ["of an earlier one", 1],
  ] as const)
    it(`is refused for another owner ${what}`, async () => {
      await take("c2", 2);
      expect(await take("c3", epoch)).to.deep.include({ status: 409, code: "UPDATE_OWNED" });
      expect(owner()).to.include({ owner: "c2", epoch: 2 });
    });

  it("is refused where the bastion of another cluster signed it, or for another update", async () => {
    const stranger = await createTestCluster();
    try {
      expect(await take("c2", 2, stranger)).to.have.nested.property("problems[0].code", "UPDATE_UNSIGNED");
    } finally {
      await stranger.remove();
    }
    expect(await take("c2", 2, cluster, "v")).to.have.property("code", "API_INVALID");
    expect(owner()).to.include({ owner: "c1", epoch: 1 });
  });

  it("is signed for an epoch above that of a node which another owner has, as behind a run over SSH", async () => {
    expect(nextEpoch(update)).to.equal(2);
    const rollout = new SteppedRollout({ nodes: ["n1"] }).settle();
    const fence = { name: "u", epoch: 7, owner: "bastion-1", generation: 1, seq: 1 };
    expect(nextEpoch(await known.update(rollout.report("n1", "fenced", { fence })))).to.equal(8);
    const others = { ...fence, name: "v", epoch: 9 };
    expect(nextEpoch(await known.update(rollout.report("n1", "fenced", { fence: others })))).to.equal(2);
  });
});
