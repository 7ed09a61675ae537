import { parseArgs } from "node:util";
import { startCluster, type Cluster } from "./controllers.ts";
import { chapters } from "./episodes.ts";
import type { Violation } from "./judge.ts";
import { Random } from "#support/random.ts";
import { Life, runEpisode, type Result } from "./run-episode.ts";

/** `npm run test:checker [-- --seed N] [--only WORD]`: all episodes, as root. The exit code is 1 after any breach. */
const text = { type: "string" } as const;
const { values } = parseArgs({ options: { seed: text, only: text } });
const seed = Number(values.seed ?? 1);
const isWanted = (name: string): boolean => name.includes(values.only ?? "");
const began = performance.now();
const results: Result[] = [];
let cluster: Cluster | undefined;
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(signal, () => void (cluster?.close() ?? Promise.resolve()).finally(() => process.exit(130)));

let episode = 0;
for (const [chapter, faults] of Object.entries(chapters)) {
  let life = new Life();
  for (const fault of faults) {
    const number = ++episode;
    if (!isWanted(`${chapter}: ${fault.name}`)) continue;
    const lastsMs = new Random(seed * 7 + number).between(2_000, 7_000);
    const result = await tried(fault.name, async (running) =>
      runEpisode(running, life, { fault, episode: number, seed, lastsMs }),
    );
    printResult(number, result);
    // A loss must not be found again in each following episode; listed conflicts are removed.
    if (!result.violations.some(({ rule }) => !rule.startsWith("conflict"))) continue;
    await end();
    life = new Life();
  }
  await end();
}

const bad = results.filter(({ violations }) => violations.length > 0);
const acknowledged = results.reduce((sum, result) => sum + result.acknowledged, 0);
const times = results.flatMap(({ healedMs }) => healedMs ?? []).toSorted((a, b) => a - b);
const at = (share: number): number => Math.round(times[Math.floor(share * (times.length - 1))] ?? 0);
console.log(`healed after p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, at most ${at(1)} ms`);
const kinds = Map.groupBy(
  bad.flatMap(({ violations }) => [...new Set(violations.map(({ rule }) => rule))]),
  (rule) => rule,
);
for (const [rule, list] of kinds) console.log(`${rule}: ${list.length} episodes`);
const took = Math.round((performance.now() - began) / 1000);
console.log(
  `seed ${seed}: ${results.length} episodes, ${acknowledged} writes acknowledged, ${bad.length} with violations, ${took} s`,
);
process.exitCode = bad.length > 0 ? 1 : 0;

async function tried(name: string, run: (cluster: Cluster) => Promise<Result>): Promise<Result> {
  try {
    cluster ??= await startCluster();
    return await run(cluster);
  } catch (error) {
    const what = error instanceof Error ? (error.stack ?? error.message) : String(error);
    const nothing = { acknowledged: 0, asked: 0, conflicts: 0, healedMs: undefined };
    return { ...nothing, name, violations: [{ rule: "broken", text: what }] };
  }
}

async function end(): Promise<void> {
  await cluster?.close();
  cluster = undefined;
}

function printResult(number: number, result: Result): void {
  results.push(result);
  const { name, acknowledged: ok, asked, conflicts, healedMs, violations } = result;
  const healed = healedMs === undefined ? "" : `${Math.round(healedMs)} ms`;
  const figures = `${`${ok}/${asked}`.padStart(9)}  ${String(conflicts).padStart(3)}  ${healed.padStart(8)}`;
  console.log(
    `${String(number).padStart(2)}  ${name.padEnd(58)} ${figures}  ${violations.length === 0 ? "ok" : "RED"}`,
  );
  const byRule = Map.groupBy(violations as readonly Violation[], ({ rule }) => rule);
  for (const [rule, list] of byRule) {
    for (const { text: what } of list.slice(0, 3)) console.log(`      ${rule}: ${what}`);
    if (list.length > 3) console.log(`      ${rule}: and ${list.length - 3} more`);
  }
}
