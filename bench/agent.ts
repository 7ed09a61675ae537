import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createTestCluster, eventually, startDaemon, writeCredentials } from "#support/cluster.ts";
import { nodeCredentials, recordAt, startController } from "#support/controllers.ts";
import { freePort } from "#support/ports.ts";

/**
 * The cost of an agent that only sends heartbeats, started as by its unit, from the bundle (npm run build): `node
 * bench/agent.ts [MINUTES]`. CPU time is the process's own, so other load does not count.
 */
const [minutes = 10] = process.argv.slice(2).map(Number);
const root = resolve(import.meta.dirname, "..");
const unit = readFileSync(join(root, "templates/kcore-node-agent.service.hbs"), "utf8");
const environment = /^Environment="(.*)"$/m.exec(unit)?.[1];
if (!environment) throw new Error("the agent's unit sets no environment");

const cluster = await createTestCluster();
const controller = await startController(cluster, { process: true });
try {
  const nodeId = randomUUID();
  const credentials = nodeCredentials(cluster, nodeId);
  await recordAt(controller, credentials);
  const { child, end } = await startDaemon(
    ["agent", "run"],
    join(cluster.dir, "agent.yaml"),
    {
      nodeId,
      listenAddr: `0.0.0.0:${await freePort()}`,
      controllers: [controller.endpoint],
      dcId: "DC1",
      tls: await writeCredentials(join(cluster.dir, "node"), "node", credentials),
      stateDir: join(cluster.dir, "state"),
    },
    { program: join(root, "dist/node-main.js"), through: ["env", environment] },
  );
  try {
    const seen = () => controller.operator.call("getNode", {}, { id: nodeId }).catch(() => undefined);
    await eventually(async () => (await seen())?.status === "ready");
    // The start itself is not measured.
    await sleep(20_000);
    const [before, began] = [cpuMs(child.pid), performance.now()];
    for (let minute = 1; minute <= minutes; minute++) {
      await sleep(60_000);
      const share = ((cpuMs(child.pid) - before) / (performance.now() - began)) * 100;
      console.log(`${minute} min: ${share.toFixed(3)} % of a core, ${residentMb(child.pid).toFixed(1)} MB resident`);
    }
  } finally {
    await end();
  }
} finally {
  await controller.end();
  await cluster.remove();
}

/** User and system time of a process, ms (proc_pid_stat(5), fields 14 and 15, in ticks of 10 ms). */
function cpuMs(pid: number | undefined): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

function residentMb(pid: number | undefined): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;
}
