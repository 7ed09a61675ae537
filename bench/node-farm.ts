import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { setTimeout as sleep } from "node:timers/promises";
import { listRunIds, readHeader, runFolder } from "#engine/run/run-folder.ts";
import { writeFarmProject } from "#support/farm-project.ts";
import { startFarm } from "#support/node-farm.ts";

/**
 * `node bench/node-farm.ts 1000 --project DIR`: that many simulated nodes behind real SSH on this machine, and a project
 * whose roster they are. Stays until Ctrl-C; watch it from another terminal. With `--run` it runs kcore over them twice
 * (all differs, all in order) and prints time, memory and sizes.
 */
const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    project: { type: "string", default: "farm" },
    pace: { type: "string", default: "150" },
    "fail-every": { type: "string", default: "0" },
    "slow-every": { type: "string", default: "0" },
    run: { type: "boolean", default: false },
  },
});
const farm = await startFarm(Number(positionals[0] ?? "100"), {
  pace: Number(values.pace),
  failEvery: Number(values["fail-every"]),
  slowEvery: Number(values["slow-every"]),
});
const folder = resolve(values.project);
writeFarmProject(folder, farm);
const words = ["state", "apply", "fleet", "--on", "n*", "--concurrency", "200"];
if (values.run) {
  await measure("all differs");
  await measure("all in order");
  await farm.stop();
} else
  console.log(`${farm.nodes.length} nodes on port ${farm.port}. In another terminal:
  cd ${folder} && kcore ${words.join(" ").replace("n*", "'n*'")}
Ctrl-C ends them.`);

async function measure(what: string): Promise<void> {
  const begun = performance.now();
  const kcore = join(import.meta.dirname, "../bin/kcore");
  const child = spawn(kcore, [...words, "--output", "json", "--report", "farm.html"], {
    cwd: folder,
    stdio: ["ignore", "ignore", "inherit"],
  });
  let [over, run, view] = [false, 0, 0];
  const ended = once(child, "exit").then(([code]) => {
    over = true;
    return code as number;
  });
  for (; !over; await sleep(500)) {
    const id = (await listRunIds(folder)).at(-1);
    const header = id === undefined ? undefined : await readHeader(runFolder(folder, id));
    run = Math.max(run, peakOf(header?.process?.pid));
    view = Math.max(view, peakOf(child.pid));
  }
  const seconds = ((performance.now() - begun) / 1000).toFixed(1);
  const events = statSync(runFolder(folder, (await listRunIds(folder)).at(-1) ?? "").events).size;
  const page = statSync(join(folder, "farm.html")).size;
  console.log(
    `${farm.nodes.length} nodes, ${what}: exit ${await ended}, ${seconds} s; peaks: run ${run} MB, view ${view} MB, farm ${peakOf(process.pid)} MB; record ${megabytes(events)} MB, report ${megabytes(page)} MB`,
  );
}

/** The most memory that a living process ever had, in MB (proc(5), VmHWM); 0 for one that is gone. */
function peakOf(pid: number | undefined): number {
  try {
    return Math.round(Number(/VmHWM:\s*(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024);
  } catch {
    return 0;
  }
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(1);
}
