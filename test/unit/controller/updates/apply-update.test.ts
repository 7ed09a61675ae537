import { expect } from "chai";
import { applyUpdate, type ApplyParts } from "#controller/updates/apply-update.ts";
import type { Verify } from "#controller/updates/signed-statements.ts";
import { verifyStatement } from "#pki/statement.ts";
import { bundleOf } from "#support/update-world.ts";
import { KnownUpdates } from "#support/known-update.ts";
import { createTestCluster, type TestCluster } from "#support/cluster.ts";
import { signOwner, signUpdate } from "#support/signed-update.ts";

describe("an applied update", () => {
  let cluster: TestCluster;
  before(async () => (cluster = await createTestCluster()));
  after(() => cluster.remove());
  const verify: Verify = (signed, now) => verifyStatement(signed, { ...cluster.authority, now });

  /** The answer to an update signed just now of a controller whose clock is `behindMs` behind. */
  const apply = (behindMs: number): Promise<unknown> => {
    const signed = signUpdate(cluster, "spring", {
      spec: { target: { version: "0.2.0" }, selector: { allNodes: true } },
    });
    const parts = {
      verify,
      clock: () => Date.now() - behindMs,
      bundles: { list: () => Promise.resolve([]) },
      index: {
        read() {
          throw new Error("the signature was accepted");
        },
      },
    };
    const request = { signed, ownership: signOwner(cluster, "spring") };
    return applyUpdate(parts as unknown as ApplyParts, "spring", request, { by: "ann", at: "" }).catch(
      (error: unknown) => error,
    );
  };

  it("is refused if signed more than five minutes in the future, because nodes would accept no other until then", async () => {
    expect(await apply(290_000)).to.have.property("message", "the signature was accepted");
    expect(await apply(310_000)).to.deep.include({
      status: 400,
      code: "UPDATE_UNSIGNED",
      hint: "set the bastion's clock right, or this controller's, and apply the update again",
    });
  });

  describe("at a controller that knows the nodes", () => {
    let known: KnownUpdates;
    beforeEach(async () => (known = await new KnownUpdates().nodes("n1")));
    afterEach(() => known.stop());

    interface Applied {
      readonly signed?: Parameters<typeof signUpdate>[2];
      readonly parts?: Partial<ApplyParts>;
      readonly name?: string;
      readonly owner?: Parameters<typeof signOwner>[2];
    }
    const systemOf = (rev: string) => ({
      target: { flakeRef: "github:acme/systems", flakeRev: rev.repeat(40) },
      selector: { allNodes: true },
    });
    const applyAs = (rev: string, { signed, parts, owner, name = "spring" }: Applied = {}): Promise<unknown> => {
      const own: ApplyParts = {
        ...known.parts,
        verify,
        clock: Date.now,
        bundles: { list: () => Promise.resolve([]) },
        ...parts,
      };
      const statement = signUpdate(cluster, "spring", signed ?? { spec: systemOf(rev) });
      const request = { signed: statement, ownership: signOwner(cluster, "spring", owner) };
      return applyUpdate(own, name, request, { by: "ann", at: "" }).catch((error: unknown) => error);
    };

    it("has one manifest per generation, also when two are applied at the same time", async () => {
      const first = await Promise.all([applyAs("a"), applyAs("b")]);
      expect(first[0]).to.deep.include({ result: "created", generation: 1 });
      expect(first[1]).to.deep.include({ status: 409, code: "MATCH_FAILED" });
      const next = await Promise.all([applyAs("c"), applyAs("d")]);
      expect(next[0]).to.deep.include({ result: "updated", generation: 2 });
      expect(next[1]).to.deep.include({ status: 409, code: "MATCH_FAILED" });
    });

    it("has the signed owner at whichever controller it is applied, and renews only that owner's signature", async () => {
      const present = () => known.parts.index.read("spring")?.owner;
      await applyAs("a", { owner: { owner: "c2", epoch: 3 } });
      expect(present()).to.include({ owner: "c2", epoch: 3 });
      const before = present()?.signed;
      const parts = { controllerId: "c2" };
      await applyAs("b", { parts, owner: { owner: "c1", epoch: 9 } });
      expect(present()?.signed, "no takeover").to.equal(before);
      await applyAs("c", { parts, owner: { owner: "c2", epoch: 3 } });
      expect(present()).to.include({ owner: "c2", epoch: 3 });
      expect(present()?.signed).not.to.deep.equal(before);
    });

    const runtime = { target: { version: "2.0" }, selector: { allNodes: true } };
    const refused: Readonly<Record<string, Applied & { readonly code: string }>> = {
      "under another name than the signed one": { name: "winter", code: "API_INVALID" },
      "at another controller than its owner": { parts: { controllerId: "c2" }, code: "UPDATE_OWNED" },
      "if its plan has blockers": {
        signed: { spec: { ...systemOf("b"), selector: { nodeIds: ["n9"] } } },
        code: "UPDATE_BLOCKED",
      },
      "if the controller lacks its bundle": {
        signed: { spec: runtime, bundle: bundleOf("2.0") },
        code: "UPDATE_BUNDLE_UNKNOWN",
      },
    };
    for (const [what, { code, ...applied }] of Object.entries(refused))
      it(`is refused ${what}`, async () => {
        await applyAs("a");
        const held = known.parts.index.read("spring")?.head.value;
        expect(await applyAs("b", applied)).to.have.property("code", code);
        expect(known.parts.index.read("spring")?.head.value).to.deep.equal(held);
      });
  });
});
