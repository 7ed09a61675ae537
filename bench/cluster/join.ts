import { setTimeout as sleep } from "node:timers/promises";
import { createTestCluster } from "#support/cluster.ts";
import { startControllers, type TestController } from "#support/controllers.ts";
import type { Figure } from "./figures.ts";

const registers = 100_000;

/** A cluster of 100,000 registers: how long a new controller needs to have them, and a restarted one to serve them. */
export async function benchJoin(): Promise<readonly Figure[]> {
  const cluster = await createTestCluster();
  const single = await startControllers(cluster, 1, { processes: true });
  try {
    const [first] = single.controllers as [TestController];
    let next = 0;
    const fill = async (): Promise<void> => {
      while (next < registers) {
        const id = `Bench/${next++}`;
        await first.operator.call("putObject", { value: { text: "v".repeat(90) } }, { id });
      }
    };
    await Promise.all(Array.from({ length: 64 }, fill));
    await first.stop();
    const restarted = await timed(async () => {
      await first.start();
      await untilReady(first);
    });
    const began = performance.now();
    const { controllers, stop } = await startControllers(cluster, 2, { processes: true, first } as never);
    const joined = performance.now() - began;
    await stop();
    void controllers;
    return [
      { name: `restart with ${registers} registers`, value: `${(restarted / 1000).toFixed(2)} s`, goal: "≤ 1.5 s" },
      { name: `a controller joins ${registers} registers`, value: `${(joined / 1000).toFixed(2)} s`, goal: "≤ 5 s" },
    ];
  } finally {
    await single.stop();
    await cluster.remove();
  }
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
