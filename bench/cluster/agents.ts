import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { openControllers } from "#api/ask.ts";
import type { Heartbeat } from "#api/schemas.ts";
import { createTestCluster } from "#support/cluster.ts";
import { nodeCredentials, recordAt, registrationOf, startControllers } from "#support/controllers.ts";
import { rateOf, useOf } from "#support/process-use.ts";
import type { Figure } from "./figures.ts";

/** Milliseconds between two heartbeats of an agent, as agents have it by default. */
const interval = 15_000;

/** `count` agents that send heartbeats to three controllers, a third of them to each, over kept connections. The figure is of the worst controller. */
export async function benchAgents(count: number, seconds: number): Promise<readonly Figure[]> {
  const cluster = await createTestCluster();
  const { controllers, stop } = await startControllers(cluster, 3, { processes: true });
  const end = new AbortController();
  const { signal } = end;
  const nodes = Array.from({ length: count }, () => randomUUID()).map((id) => ({
    id,
    credentials: nodeCredentials(cluster, id),
  }));
  const beating: Promise<void>[] = [];
  try {
    const [first] = controllers;
    if (!first) throw new Error("no controller");
    for (const { credentials } of nodes) await recordAt(first, credentials);
    for (const [index, { id, credentials }] of nodes.entries()) {
      const endpoint = controllers[index % controllers.length]?.endpoint ?? "";
      const asked = openControllers({ endpoints: [endpoint], credentials, signal, clock: Date.now });
      await asked.ask((client) => client.call("registerNode", registrationOf(id, { hostname: `n${index}` })));
      const beat = async (): Promise<void> => {
        await sleep(Math.random() * interval, undefined, { signal });
        for (;;) {
          await asked.ask((client) => client.call("heartbeat", beatOf(id), { signal }));
          await sleep(interval, undefined, { signal });
        }
      };
      beating.push(
        beat()
          .catch((error: unknown) => {
            if (!signal.aborted) throw error;
          })
          .finally(() => asked.close()),
      );
    }
    await Promise.race([sleep(2 * interval), ...beating]);
    const before = controllers.map((one) => useOf(one.pid()));
    await Promise.race([sleep(seconds * 1000), ...beating]);
    const used = before.map(rateOf);
    return [
      {
        name: `${count} agents on three controllers: a controller's share of a core`,
        value: `${Math.max(...used.map(({ percent }) => percent)).toFixed(1)} %`,
        goal: "≤ 2 %",
        note: used.map(({ percent, residentMb }) => `${percent.toFixed(1)} %, ${residentMb.toFixed(0)} MB`).join("; "),
      },
    ];
  } finally {
    end.abort();
    await Promise.allSettled(beating);
    await stop();
    await cluster.remove();
  }
}

function beatOf(nodeId: string): Heartbeat {
  const usage = { load: 0.5, memoryUsed: 2 ** 30, diskUsed: 2 ** 33, diskSize: 2 ** 36, storeFree: 2 ** 35 };
  return { nodeId, bootId: nodeId, health: { ok: true }, usage };
}
