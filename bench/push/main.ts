import { mkdtempSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startTargets, type Targets } from "#support/targets.ts";
import { workloadNames, workloads, type WorkloadName } from "#support/workload.ts";
import { countExactly } from "./exact.ts";
import { timeExec } from "./exec.ts";
import { startLines, type Lines } from "./lines.ts";
import { describeMachine } from "./machine.ts";
import { measure, median } from "./measure.ts";
import { save } from "./page.ts";
import { isThere } from "./peers.ts";
import type { Cell, Exact, Name, Results } from "./results.ts";
import { contenderOf, peakMemory, round, timeRounds } from "./rounds.ts";
import { kcoreCommand, placesOf, type Scene } from "./scene.ts";
import { exactTable, goalsTable, plain, timesTable } from "./tables.ts";

/**
 * The push of both workloads beside a hand-written script through OpenSSH, Ansible, Ansible + Mitogen and pyinfra, on
 * real sshds of this machine: `npm run bench:push`, as root. It ends with an error when kcore did not do its work; a missed
 * goal is only printed.
 *
 *   --rounds 3                how often each is timed; the median counts
 *   --quick                   one round, N up to 10, without Ansible and pyinfra
 *   --only exact,times,…      some of: exact, times, latency, peers, exec, growth
 *   --save                    keep the results, and make docs/performance.md and its plot of them
 */
const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "3" },
    quick: { type: "boolean", default: false },
    only: { type: "string" },
    save: { type: "boolean", default: false },
  },
});
const rounds = values.quick ? 1 : Number(values.rounds);
const parts = values.only?.split(",") ?? (values.quick ? ["exact", "times", "latency"] : undefined);
const wants = (part: string) => parts?.includes(part) ?? true;
const say = (text: string) => process.stderr.write(`${text}\n`);
const folder = mkdtempSync(join(tmpdir(), "kcore-push-"));
const largest = wants("growth") ? 200 : values.quick && !wants("exec") ? 10 : 50;
const targets: Targets = await startTargets(largest);
// Child processes end with this one by themselves; the folder does not.
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(
    signal,
    () => void targets.stop().then(() => (rmSync(folder, { recursive: true, force: true }), process.exit(130))),
  );
const cells: Cell[] = [];
const exact: Exact[] = [];
let found: Omit<Results, "cells" | "exact"> = {
  date: new Date().toISOString().slice(0, 10),
  machine: await describeMachine(),
  rounds,
  memory: [],
};

/** A workload for the first `count` targets, reached straight or through these ports. */
function sceneOf(name: WorkloadName, count: number, ports?: readonly number[]): Scene {
  const nodes = targets.addresses.slice(0, count).map((address, at) => {
    const port = ports?.[at];
    return {
      name: `t${at + 1}`,
      ...(port === undefined ? { address, port: targets.port } : { address: "127.0.0.1", port }),
    };
  });
  return { folder, targets, name, work: workloads[name](), nodes };
}

async function behindLines(count: number, rtt: number, work: (lines: Lines) => Promise<void>): Promise<void> {
  const lines = await startLines(targets.addresses.slice(0, count), targets.port, rtt);
  try {
    await work(lines);
  } finally {
    await lines.stop();
  }
}

/** Times both workloads on so many nodes. */
async function time(count: number, names: readonly Name[], rtt = 0, ports?: readonly number[]): Promise<void> {
  for (const work of workloadNames) {
    say(`${work}, N=${count}, RTT ${rtt} ms: ${names.join(", ")} (load ${loadavg()[0]?.toFixed(1)})`);
    cells.push(...(await timeRounds(sceneOf(work, count, ports), names, rtt, rounds)));
  }
}

/** Keeps the memory of kcore with so many nodes, and with the workload that was timed last. */
async function keepPeak(nodes: number): Promise<void> {
  const peak = Math.round(await peakMemory(sceneOf(workloadNames.at(-1) ?? "W", nodes)));
  found = { ...found, memory: [...found.memory, { nodes, peak }] };
}

try {
  // Once without counting, so that the first one measured does not pay for cold files.
  await timeRounds(sceneOf("W", 1), ["script", "kcore"], 0, 1);
  if (wants("exact"))
    await behindLines(1, 0, async (lines) => {
      for (const work of workloadNames)
        for (const name of ["script", "kcore"] as const)
          exact.push(await countExactly(sceneOf(work, 1, lines.ports), lines, name));
    });
  if (wants("times")) {
    await time(1, ["script", "kcore", "local"]);
    await time(10, [
      "script",
      "kcore",
      ...(wants("peers") ? (["ansible", "mitogen", "pyinfra"] as const).filter(isThere) : []),
    ]);
    found = { ...found, startUp: await timeStartUp(sceneOf("W", 10)) };
    if (!values.quick) {
      await time(50, ["script", "kcore"]);
      await keepPeak(50);
    }
  }
  if (wants("latency"))
    for (const count of [1, 10])
      await behindLines(count, 100, ({ ports }) => time(count, ["script", "kcore"], 100, ports));
  if (wants("exec") && isThere("pssh")) found = { ...found, exec: await timeExec(sceneOf("W", 50), rounds) };
  if (wants("growth")) {
    await time(200, ["script", "kcore"]);
    await keepPeak(200);
  }
} finally {
  await targets.stop();
  rmSync(folder, { recursive: true, force: true });
}

const results: Results = { ...found, cells, exact };
const { startUp, memory } = results;
console.log(`${results.date}, ${results.machine}, median of ${rounds}\n`);
console.log(`${plain(goalsTable(results))}\n`);
if (startUp !== undefined)
  console.log(
    `kcore's start-up, a run of a state with nothing to do that speaks to no node: ${startUp.toFixed(2)} s\n`,
  );
if (exact.length > 0) console.log(`${plain(exactTable(results))}\n`);
console.log(plain(timesTable(results)));
for (const { nodes, peak } of memory) console.log(`\nlargest process of kcore, N=${nodes}: ${peak} MB`);
if (values.save) save(results);

/** kcore from its start to its end with nothing to do, on the scene's roster. */
async function timeStartUp(scene: Scene): Promise<number> {
  contenderOf("kcore", scene).reset();
  const words = ["state", "apply", "nothing", "--on", "*", "--output", "json"];
  const times: number[] = [];
  for (let turn = 0; turn < Math.max(3, rounds); turn++)
    times.push((await measure(kcoreCommand(placesOf(scene, "kcore")[0], words))).seconds);
  return round(median(times));
}
