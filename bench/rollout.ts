import { resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createTestCluster } from "#support/cluster.ts";
import { startControllers, type TestController } from "#support/controllers.ts";
import { rateOf, useOf } from "#support/process-use.ts";
import { startRolloutNodes } from "#support/rollout-nodes.ts";
import { signOwner, signUpdate } from "#support/signed-update.ts";
import { uploadBundle } from "#api/bundle-transfer.ts";
import { writeRuntime } from "#support/bundles.ts";

/**
 * The cost of a rollout for the controller that carries it out: `node bench/rollout.ts [NODES] [BATCH]`, by default 200
 * in batches of 20. It runs on three controllers, started as by their units, from the bundle (npm run build). A node
 * takes two seconds to prepare and three to activate, less than a real one: the share of a core is an upper bound. CPU
 * time is the process's own, so other load does not count.
 */
const [count = 200, batch = 20] = process.argv.slice(2).map(Number);
const program = resolve(import.meta.dirname, "../dist/node-main.js");
const cluster = await createTestCluster();
const place = (index: number) => ({ endpoint: `127.0.0.${11 + index}:19090`, program });
const { controllers, stop } = await startControllers(cluster, 3, { processes: true, place });
const [owner] = controllers as [TestController];
const { bundle, file } = await writeRuntime(cluster.dir, "0.5.0", 20_000);
await uploadBundle(owner.operator, { bundle, file, start: 0 });
const names = Array.from({ length: count }, (_, index) => `n${String(index + 1).padStart(4, "0")}`);
const stopNodes = await startRolloutNodes(
  cluster,
  controllers,
  names.map((hostname, index) => ({
    hostname,
    dc: index % 2 === 0 ? "DC1" : "DC2",
    async carryOut(step) {
      await sleep(step === "prepare" ? 2_000 : 3_000);
      return { ok: true };
    },
  })),
);
try {
  await sleep(10_000);
  const idle = await shareOf(() => sleep(15_000));
  console.log(`${count} nodes, nothing to do: ${idle.toFixed(1)} % of a core`);
  const signed = signUpdate(cluster, "bench", {
    spec: {
      target: { version: "0.5.0" },
      selector: { allNodes: true },
      strategy: { type: "batch", maxUnavailable: batch },
      approvalPolicy: "auto",
    },
    bundle,
  });
  const began = performance.now();
  const busy = await shareOf(async () => {
    const ownership = signOwner(cluster, "bench", { owner: owner.id });
    await owner.operator.call("applyUpdate", { signed, ownership }, { id: "bench" });
    const isDone = async (): Promise<boolean> =>
      (await owner.operator.call("getUpdate", {}, { id: "bench" })).phase === "succeeded";
    while (!(await isDone())) await sleep(1_000);
  });
  const seconds = (performance.now() - began) / 1000;
  console.log(`${count} nodes in batches of ${batch}: ${busy.toFixed(1)} % of a core, ${seconds.toFixed(0)} s`);
} finally {
  await stopNodes();
  await stop();
  await cluster.remove();
}

async function shareOf(work: () => Promise<unknown>): Promise<number> {
  const before = useOf(owner.pid());
  await work();
  return rateOf(before).percent;
}
