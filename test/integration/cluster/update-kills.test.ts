import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { ApiRefusal } from "#api/client.ts";
import type { UpdateView } from "#api/update-schemas.ts";
import type { Bundle, SignedStatement } from "#rollout/spec.ts";
import { createTestCluster, eventually, type TestCluster } from "#support/cluster.ts";
import { startControllers, type TestController } from "#support/controllers.ts";
import { startRolloutNodes } from "#support/rollout-nodes.ts";
import { bringBundles, signUpdate } from "#support/signed-update.ts";

/** A controller that has just started has not told the others what it speaks yet. */
async function takes({ operator }: TestController, name: string, signed: SignedStatement): Promise<boolean> {
  try {
    await operator.call("applyUpdate", { signed }, { id: name });
    return true;
  } catch (error) {
    if (error instanceof ApiRefusal && ["CLUSTER_MIXED", "UPDATE_NO_MAJORITY"].includes(error.reason)) return false;
    throw error;
  }
}

const wanted = 20;
const maxUnavailable = 3;

/** The owner as a real process, killed where it stands, again and again: with every transition it has written it goes on, or another one does. */
describe("a cluster update whose owner is killed", () => {
  let cluster: TestCluster;
  let controllers: readonly TestController[];
  let stop: () => Promise<void>;
  let nodes: Awaited<ReturnType<typeof startRolloutNodes>>;
  let bundles: ReadonlyMap<string, Bundle>;
  /** Nodes that are being brought to something else, with the owner whose order it is. */
  const underWay = new Map<string, string>();
  const wrong: string[] = [];
  let most = 0;

  before(async () => {
    cluster = await createTestCluster();
    ({ controllers, stop } = await startControllers(cluster, 3, { processes: true, dcs: ["DC1", "DC1", "DC2"] }));
    bundles = await bringBundles(cluster, controllers[0] as TestController, ["0.4.0", "0.5.0"]);
    const names = Array.from({ length: 12 }, (_, index) => `n${index + 1}`);
    nodes = await startRolloutNodes(
      cluster,
      controllers,
      names.map((hostname, index) => ({
        hostname,
        dc: index % 2 === 0 ? "DC1" : "DC2",
        async carryOut(step, { fence }) {
          if (step === "prepare") return { ok: true };
          const other = underWay.get(hostname);
          if (other !== undefined) wrong.push(`${hostname} was driven by ${other} and ${fence.owner}`);
          underWay.set(hostname, fence.owner);
          most = Math.max(most, underWay.size);
          await sleep(20 + Math.random() * 200);
          underWay.delete(hostname);
          return { ok: true };
        },
      })),
    );
  });
  after(async () => {
    await nodes?.stop();
    await stop?.();
    await cluster?.remove();
  });

  const at = (id: string): TestController => controllers.find((one) => one.id === id) as TestController;
  /** From whichever controller answers. */
  const get = async (name: string): Promise<UpdateView> => {
    for (const { operator } of controllers) {
      const view = await operator.call("getUpdate", {}, { id: name }).catch(() => undefined);
      if (view) return view;
    }
    throw new Error("no controller answers");
  };

  it(`goes on after each of ${wanted} kills, and after takeovers: never two owners at one node, never more down than may be`, async () => {
    const [first] = controllers as [TestController];
    let kills = 0;
    let takeovers = 0;
    const moments = new Set<string>();
    for (let round = 0; kills < wanted; round++) {
      const name = `round-${round}`;
      const bundle = bundles.get(round % 2 === 0 ? "0.5.0" : "0.4.0");
      const signed = signUpdate(cluster, name, {
        spec: {
          target: { version: bundle?.version, allowDowngrade: true },
          selector: { allNodes: true },
          strategy: { type: "batch", maxUnavailable },
          approvalPolicy: "auto",
        },
        ...(bundle && { bundle }),
      });
      await eventually(() => takes(first, name, signed));
      for (;;) {
        await sleep(Math.random() * 400);
        const view = await eventually(() => get(name));
        if (view.phase === "succeeded") break;
        expect(["pending", "ready", "rolling_out"], JSON.stringify(view, undefined, 1)).to.include(view.phase);
        if (kills >= wanted) continue;
        const owner = at(view.owner.id);
        for (const { phase } of view.nodeStatus) moments.add(phase);
        await owner.stop("SIGKILL");
        kills++;
        // Now and then it stays away for a while, and another one takes over.
        if (kills % 5 === 0) {
          const other = controllers.find((one) => one !== owner) as TestController;
          await eventually(() =>
            other.operator.call("takeOverUpdate", {}, { id: name }).then(({ owner: id }) => id === other.id),
          );
          takeovers++;
          await sleep(Math.random() * 300);
        }
        await owner.start();
      }
      await eventually(async () =>
        (await Promise.all(controllers.map(({ operator }) => operator.call("getUpdate", {}, { id: name })))).every(
          ({ phase }) => phase === "succeeded",
        ),
      );
      const present = new Set(nodes.nodes.map((node) => node.present().id));
      expect([...present]).to.deep.equal([bundle?.storePath]);
    }
    expect(wrong).to.deep.equal([]);
    expect(most).to.be.within(2, maxUnavailable);
    expect(takeovers).to.be.at.least(3);
    expect([...moments]).to.include.members(["pending", "preparing", "activating", "succeeded"]);
  });
});
