import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createTestCluster, eventually, startDaemon, writeCredentials, type Daemon } from "#support/cluster.ts";
import { nodeCredentials, recordAt, startControllers } from "#support/controllers.ts";
import { freePort } from "#support/ports.ts";
import { rateOf, useOf, type Rate } from "#support/process-use.ts";
import { unitEnvironment } from "#support/unit-environment.ts";
import type { Figure } from "./figures.ts";

const agentEnvironment = Object.entries(unitEnvironment("node-agent")).map((setting) => setting.join("="));
const settlingMs = 120_000;

/** Three idle controllers, each with an agent that sends heartbeats, started as by their units. Each figure is of the worst process. */
export async function benchIdle(seconds: number): Promise<readonly Figure[]> {
  const cluster = await createTestCluster();
  const agents: Daemon[] = [];
  const { controllers, stop } = await startControllers(cluster, 3, { processes: true });
  try {
    for (const [index, controller] of controllers.entries()) {
      const nodeId = randomUUID();
      const credentials = nodeCredentials(cluster, nodeId);
      await recordAt(controller, credentials);
      const config = {
        nodeId,
        listenAddr: `127.0.0.1:${await freePort()}`,
        controllers: [controller.endpoint],
        dcId: "DC1",
        tls: await writeCredentials(join(cluster.dir, `node-${index}`), "node", credentials),
        stateDir: join(cluster.dir, `state-${index}`),
      };
      const file = join(cluster.dir, `agent-${index}.yaml`);
      agents.push(await startDaemon(["agent", "run"], file, config, { through: ["env", ...agentEnvironment] }));
      const seen = () => controller.operator.call("getNode", {}, { id: nodeId }).catch(() => undefined);
      await eventually(async () => (await seen())?.status === "ready");
    }
    for (const { operator } of controllers) operator.close();
    // Neither the start nor most of V8's compilation is measured.
    await sleep(settlingMs);
    const pids = [...controllers.map((one) => one.pid()), ...agents.map(({ child }) => child.pid ?? 0)];
    const before = pids.map(useOf);
    await sleep(seconds * 1000);
    const used = before.map(rateOf);
    return [...figuresOf("controller", used.slice(0, 3)), ...figuresOf("agent", used.slice(3))];
  } finally {
    for (const agent of agents) await agent.end();
    await stop();
    await cluster.remove();
  }
}

function figuresOf(who: string, used: readonly Rate[]): readonly Figure[] {
  const worst = used.toSorted((a, b) => b.wakes - a.wakes)[0] as Rate;
  const threads = worst.byThread.map(([name, count]) => `${name} ${count.toFixed(1)}`).join(", ");
  const most = (of: (rate: Rate) => number): number => Math.max(...used.map(of));
  const isController = who === "controller";
  const goal = (text: string) => (isController ? { goal: text } : {});
  return [
    { name: `an idle ${who} is woken, a second`, value: worst.wakes.toFixed(1), ...goal("≤ 5"), note: threads },
    {
      name: `an idle ${who}, share of a core`,
      value: `${most(({ percent }) => percent).toFixed(2)} %`,
      ...goal("≤ 0.2 %"),
    },
    {
      name: `an idle ${who}, resident`,
      value: `${most(({ residentMb }) => residentMb).toFixed(0)} MB`,
      ...goal("≤ 90 MB"),
    },
  ];
}
