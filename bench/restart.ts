import { spawn } from "node:child_process";
import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openApi } from "#api/client.ts";
import { parseEndpoint } from "#api/endpoint.ts";
import { keyRules } from "#controller/cluster/registers.ts";
import { createReplica, type Replica } from "#controller/replica/create-replica.ts";
import { openDatabase, type ControllerDatabase } from "#controller/store/database.ts";
import { createTestCluster } from "#support/cluster.ts";
import { startController } from "#support/controllers.ts";
import { useOf } from "#support/process-use.ts";
import { unitEnvironment } from "#support/unit-environment.ts";

/**
 * Measures a controller with 110,000 objects: the time from its start to its first answer that it is ready, after a
 * regular stop and after a `kill -9`; its CPU time and its memory then.
 * `node bench/restart.ts ROUNDS PROGRAM…`, programs (dist/node-main.js) alternating.
 */
const [rounds, ...programs] = process.argv.slice(2);
const objects = 110_000;
const value = { spec: { image: "registry.example/app:1.2.3", replicas: 3, ports: [80, 443] }, labels: { tier: "web" } };

const cluster = await createTestCluster();
try {
  const controller = await startController(cluster, { process: true });
  await controller.stop();
  const kept = join(cluster.dir, "kept");
  for (const [name, dirty] of [
    ["after a stop", 0],
    ["after kill -9", 9_900],
  ] as const) {
    await fill(controller.dbPath, controller.id, dirty, kept);
    const times = new Map(programs.map((program) => [program, [] as Start[]]));
    for (let round = 0; round < Number(rounds); round++)
      for (const program of programs) {
        rmSync(controller.dbPath, { recursive: true });
        cpSync(kept, controller.dbPath, { recursive: true });
        times.get(program)?.push(await startOnce(program));
      }
    for (const [program, all] of times) {
      const median = (of: keyof Start): string =>
        all
          .map((one) => one[of])
          .toSorted((a, b) => a - b)
          [all.length >> 1]?.toFixed(0) ?? "";
      const shown = all.map(({ took, cpu }) => `${took.toFixed(0)}/${cpu.toFixed(0)}`).join(" ");
      console.log(
        `${name}, ${program}: ready after ${median("took")} ms, ${median("cpu")} ms of CPU, ${median("rss")} MB (${shown})`,
      );
    }
  }

  async function startOnce(program: string): Promise<Start> {
    const began = performance.now();
    const config = join(controller.folder, "controller.yaml");
    const child = spawn(process.execPath, [program, "controller", "serve", "--config", config], {
      stdio: "ignore",
      env: { ...process.env, ...unitEnvironment("controller") },
    });
    const client = openApi({
      endpoint: parseEndpoint(controller.endpoint),
      credentials: cluster.operator,
      clock: Date.now,
    });
    try {
      for (;;) {
        const ready = await client.call("ready", {}).catch(() => undefined);
        if (ready?.ready) break;
        await sleep(5);
      }
      const took = performance.now() - began;
      const { cpuMs: cpu, residentMb: rss } = useOf(child.pid as number);
      return { took, cpu, rss };
    } finally {
      client.close();
      child.kill("SIGKILL");
      await new Promise((resolve) => child.once("exit", resolve));
    }
  }
} finally {
  await cluster.remove();
}

/** Fills up to `objects`, then writes `dirty` changes that no snapshot has; keeps a copy of the resulting folder. */
async function fill(folder: string, id: string, dirty: number, kept: string): Promise<void> {
  const open = async (): Promise<{ replica: Replica; db: ControllerDatabase }> => {
    const db = await openDatabase({
      folder,
      rules: keyRules,
      onBroken: (error) => {
        throw error;
      },
    });
    const replica = createReplica({
      id,
      cluster: cluster.authority.cluster,
      clock: { wall: Date.now, mono: () => performance.now() },
      rng: Math.random,
      timers: {
        after: (ms, run) => (setTimeout(run, ms).unref(), () => undefined),
        soon: (run) => void setImmediate(run),
      },
      net: { dial: () => undefined },
      db,
      start: "found",
    });
    return { replica, db };
  };
  const { replica, db } = await open();
  const put = (count: number, salt: number): Promise<unknown> => {
    let next = 0;
    const write = async (): Promise<void> => {
      while (next < count) {
        const name = `app-${String(next++).padStart(6, "0")}`;
        await replica.write([{ key: `object/App/${name}`, value: { ...value, salt } }]);
      }
    };
    return Promise.all(Array.from({ length: 256 }, write));
  };
  if (replica.status().registers < objects) await put(objects, 0);
  await db.write();
  await put(dirty, 1);
  rmSync(kept, { recursive: true, force: true });
  if (dirty > 0) cpSync(folder, kept, { recursive: true });
  replica.stop();
  await db.close();
  if (dirty === 0) cpSync(folder, kept, { recursive: true });
}

interface Start {
  /** ms */
  readonly took: number;
  readonly cpu: number;
  /** MB */
  readonly rss: number;
}
