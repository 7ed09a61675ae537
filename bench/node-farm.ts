import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { setTimeout as sleep } from "node:timers/promises";
import { listRunIds, readHeader, runFolder } from "#engine/run/run-folder.ts";
import { writeFarmProject } from "#support/farm-project.ts";
import { startFarm } from "#support/node-farm.ts";
import { median, PseudoTerminal } from "./view/pseudo-terminal.ts";

/**
 * `node bench/node-farm.ts 1000 --project DIR`: that many simulated nodes behind real SSH on this machine, and a project
 * whose roster they are. Stays until Ctrl-C; watch it from another terminal. With `--run` it runs kcore over them twice
 * in a terminal (all differs, all in order) and prints time, failures, memory, keys and sizes. The run and the live view are two processes.
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
const count = Number(positionals[0] ?? "100");
const folder = resolve(values.project);
const words = ["state", "apply", "fleet", "--on", "n*", "--concurrency", "200"];
if (values.run) {
  // The farm has a process of its own, so that the farm's work does not delay the measurement of keys.
  const own = process.argv.slice(1).filter((word) => word !== "--run");
  const farm = spawn(process.execPath, own, { stdio: ["ignore", "pipe", "inherit"] });
  try {
    await once(farm.stdout, "data");
    await measure("all differs", farm.pid);
    await measure("all in order", farm.pid);
  } finally {
    farm.kill();
  }
} else {
  const farm = await startFarm(count, {
    pace: Number(values.pace),
    failEvery: Number(values["fail-every"]),
    slowEvery: Number(values["slow-every"]),
  });
  writeFarmProject(folder, farm);
  console.log(`${count} nodes on port ${farm.port}. In another terminal:
  cd ${folder} && kcore ${words.join(" ").replace("n*", "'n*'")}
Ctrl-C ends them.`);
}

async function measure(what: string, farm: number | undefined): Promise<void> {
  const before = (await listRunIds(folder)).at(-1);
  const terminal = new PseudoTerminal(folder, [...words, "--output", "ink", "--no-stay", "--report", "farm.html"]);
  const view = await terminal.view();
  await terminal.waitFor(/fleet/, 60_000);
  const keys: number[] = [];
  let [over, run, watching, most] = [false, 0, 0, 0];
  const ended = terminal.end().then(() => (over = true));
  for (let round = 0; !over; round++, await sleep(500)) {
    const id = (await listRunIds(folder)).at(-1);
    const header = id === undefined || id === before ? undefined : await readHeader(runFolder(folder, id));
    const living = (): number => peakOf(header?.process?.pid);
    run = Math.max(run, living());
    most = Math.max(most, peakOf(view));
    if (living() > 0) watching = most;
    if (round % 4 === 2 && living() > 0) keys.push(...(await timeKey(terminal, () => living() > 0)));
  }
  await ended;
  const seconds = ((performance.now() - terminal.started) / 1000).toFixed(1);
  const { events } = runFolder(folder, (await listRunIds(folder)).at(-1) ?? "");
  const ends = readFileSync(events, "utf8").match(/"type":"node.finished",[^\n]*/g) ?? [];
  const failed = count - ends.filter((end) => end.includes('"outcome":"done"')).length;
  const page = statSync(join(folder, "farm.html")).size;
  console.log(
    `${count} nodes, ${what}: ${failed} not done, ${seconds} s; peaks: run ${run} MB, view ${watching} MB (with its report ${most} MB), farm ${peakOf(farm)} MB; ${keys.length} keys: worst ${Math.max(...keys).toFixed(0)} ms, median ${median(keys).toFixed(0)} ms; record ${megabytes(statSync(events).size)} MB, report ${megabytes(page)} MB`,
  );
}

/** Milliseconds until the live view shows its help after a key; none if the run ended meanwhile. @throws Error without an answer */
async function timeKey(terminal: PseudoTerminal, isAlive: () => boolean): Promise<readonly number[]> {
  terminal.text = "";
  terminal.send("?");
  const taken = await terminal.waitFor(/this help/).catch((error: unknown) => {
    if (isAlive()) throw error;
    return undefined;
  });
  await sleep(150);
  terminal.send("?");
  return taken === undefined ? [] : [taken];
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
