import { expect } from "chai";
import { applyUpdate, type ApplyParts } from "#controller/updates/apply-update.ts";
import { KnownUpdates } from "#support/known-update.ts";
import { createTestCluster, type TestCluster } from "#support/cluster.ts";
import { signUpdate } from "#support/signed-update.ts";

describe("an update that is applied", () => {
  let cluster: TestCluster;
  before(async () => (cluster = await createTestCluster()));
  after(() => cluster.remove());

  /** What comes of one that was just signed, at a controller whose clock is so far behind. */
  const apply = (behindMs: number): Promise<unknown> => {
    const signed = signUpdate(cluster, "spring", {
      spec: { target: { version: "0.2.0" }, selector: { allNodes: true } },
    });
    const parts = {
      cluster: cluster.authority.cluster,
      rootPem: () => cluster.authority.rootPem,
      clock: () => Date.now() - behindMs,
      bundles: { list: () => Promise.resolve([]) },
      index: {
        read() {
          throw new Error("it was taken for the bastion's word");
        },
      },
    };
    return applyUpdate(parts as unknown as ApplyParts, "spring", { signed }, { by: "ann", at: "" }).catch(
      (error: unknown) => error,
    );
  };

  it("is refused when it was signed more than five minutes ahead: nodes would take no other one until then", async () => {
    expect(await apply(290_000)).to.have.property("message", "it was taken for the bastion's word");
    expect(await apply(310_000)).to.deep.include({
      status: 400,
      code: "UPDATE_UNSIGNED",
      hint: "set the bastion's clock right, or this controller's, and apply it again",
    });
  });

  it("is one manifest for each generation, also when two come at once", async () => {
    const known = await new KnownUpdates().nodes("n1");
    const { cluster: name, rootPem } = cluster.authority;
    const parts = {
      ...known.parts,
      cluster: name,
      rootPem: () => rootPem,
      clock: Date.now,
      bundles: { list: () => Promise.resolve([]) },
    };
    const applyAs = (flakeRev: string): Promise<unknown> => {
      const target = { flakeRef: "github:acme/systems", flakeRev: flakeRev.repeat(40) };
      const signed = signUpdate(cluster, "spring", { spec: { target, selector: { allNodes: true } } });
      return applyUpdate(parts, "spring", { signed }, { by: "ann", at: "" }).catch((error: unknown) => error);
    };
    try {
      const first = await Promise.all([applyAs("a"), applyAs("b")]);
      expect(first[0]).to.deep.include({ result: "created", generation: 1 });
      expect(first[1]).to.deep.include({ status: 409, code: "MATCH_FAILED" });
      const next = await Promise.all([applyAs("c"), applyAs("d")]);
      expect(next[0]).to.deep.include({ result: "updated", generation: 2 });
      expect(next[1]).to.deep.include({ status: 409, code: "MATCH_FAILED" });
    } finally {
      known.stop();
    }
  });
});
