import { setTimeout as sleep } from "node:timers/promises";
import { createTestCluster } from "#support/cluster.ts";
import { startControllers, type TestController } from "#support/controllers.ts";
import type { Figure } from "./figures.ts";

const registers = 100_000;

/** A cluster of 100,000 registers: how long a new controller needs to have them, and a restarted one to serve them. */
export async function benchJoin(): Promise<readonly Figure[]> {
  const cluster = await createTestCluster();
  let restarted = 0;
  let joinBegan = 0;
  // The first controller is filled and restarted before the second is registered.
  const prepare = async (index: number, first: TestController): Promise<void> => {
    if (index !== 1) return;
    await fill(first);
    await first.stop("SIGTERM");
    restarted = await timed(async () => {
      await first.start();
      await untilReady(first);
    });
    joinBegan = performance.now();
  };
  const { controllers, stop } = await startControllers(cluster, 2, { processes: true, prepare });
  try {
    const joined = performance.now() - joinBegan;
    const [, second] = controllers as [TestController, TestController];
    const { registers: found } = await second.operator.call("replicationStatus", {});
    if (found < registers) throw new Error(`the joined controller has ${found} of ${registers}`);
    return [
      { name: `restart with ${registers} registers`, value: `${(restarted / 1000).toFixed(2)} s`, goal: "≤ 1.5 s" },
      { name: `a controller joins ${registers} registers`, value: `${(joined / 1000).toFixed(2)} s`, goal: "≤ 5 s" },
    ];
  } finally {
    await stop();
    await cluster.remove();
  }
}

/** Writes 100,000 registers. */
export async function fill({ operator }: TestController): Promise<void> {
  let next = 0;
  const write = async (): Promise<void> => {
    while (next < registers)
      await operator.call("putObject", { value: { text: "v".repeat(90) } }, { id: `Bench/${next++}` });
  };
  await Promise.all(Array.from({ length: 64 }, write));
}

async function timed(work: () => Promise<void>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

async function untilReady({ operator }: TestController): Promise<void> {
  for (;;) {
    const ready = await operator.call("ready", {}).then(
      (reply) => reply.ready,
      () => false,
    );
    if (ready) return;
    await sleep(10);
  }
}
