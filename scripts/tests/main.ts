// Runs test suites and checks as concurrent processes, and reports times and failures; exits 1 unless all passed.
import { readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { changeOf } from "./changed.ts";
import { countsLine, drawReport, jobLine, sum, timesOf } from "./report.ts";
import { failedPartOf, startJob, type JobResult, type Running } from "./run-job.ts";
import { nextJob } from "./schedule.ts";
import { jobsOf, readTimes, suites, timesFile, type Job } from "./suites.ts";

const usage = `node scripts/tests/main.ts [SUITE…] [--changed] [--since REF] [--again] [--save]

  SUITE…     ${[...Object.keys(suites), "checks"].join(", ")}; without one: unit sim integration smoke
  --changed  only test files that uncommitted changes can break; the rest is told as left out
  --since REF  with --changed: what changed since this commit, too
  --again    a file that failed runs once more, alone, when all others have ended; it counts as it ended then
  --save     keeps the times in scripts/tests/times.json`;

const flag = { type: "boolean", default: false } as const;
const options = {
  changed: flag,
  since: { type: "string", default: "HEAD" },
  again: flag,
  save: flag,
  help: flag,
} as const;
const { values, positionals } = parseArgs({ options, allowPositionals: true });
if (values.help) {
  console.log(usage);
  process.exit(0);
}

const names = (positionals.length > 0 ? positionals : ["unit", "sim", "integration", "smoke"]).filter((name) => {
  const isLeftOut = suites[name]?.root === true && process.getuid?.() !== 0;
  if (isLeftOut) console.log(`${name}: left out, its machines need root`);
  return !isLeftOut;
});
const change = values.changed ? changeOf(values.since) : undefined;
const times = readTimes();
const waiting = jobsOf(names, times, change?.tests);
if (change) for (const line of change.leftOut(names)) console.log(line);

const running: Running[] = [];
const results: JobResult[] = [];
let stopped: NodeJS.Signals | undefined;
const started = performance.now();
const startCpu = machineCpuSeconds();

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
  process.on(signal, () => {
    if (!stopped) console.log(`${signal}: ${running.length} jobs clean up; no other begins`);
    stopped = signal;
    for (const job of running) job.end();
  });

const cores = availableParallelism();
await runAll(waiting, cores);
const flaky = values.again && !stopped ? await runAgain() : [];

const all = { seconds: (performance.now() - started) / 1000, machineCpu: machineCpuSeconds() - startCpu, cores };
for (const line of drawReport(results, flaky, all)) console.log(line);
if (values.save) writeFileSync(timesFile, `${JSON.stringify({ ...readTimes(), ...timesOf(results) }, undefined, 2)}\n`);
const counts = sum(results);
console.log(countsLine(counts));
process.exit(counts.failed > 0 || stopped || (counts.passed === 0 && !change) ? 1 : 0);

async function runAll(jobs: readonly Job[], cores: number): Promise<void> {
  const left = [...jobs];
  while (left.length > 0 || running.length > 0) {
    for (;;) {
      const job = stopped
        ? undefined
        : nextJob(
            left,
            running.map((one) => one.job),
            cores,
          );
      if (!job) break;
      left.splice(left.indexOf(job), 1);
      const begun = startJob(job);
      for (const other of running) {
        other.beside.add(job.name);
        begun.beside.add(other.job.name);
      }
      running.push(begun);
    }
    if (running.length === 0) return;
    const result = await Promise.race(running.map(({ ended }) => ended));
    running.splice(
      running.findIndex(({ job }) => job === result.job),
      1,
    );
    results.push(result);
    console.log(jobLine(result));
    if (sum([result]).failed > 0) console.log(result.output);
  }
}

/** Runs the failed files of each job once more, alone. If they pass, their results replace those in `results`. Returns the replaced results. */
async function runAgain(): Promise<JobResult[]> {
  const failed = results.filter((result) => sum([result]).failed > 0);
  const replaced: JobResult[] = [];
  for (const before of failed) {
    const again = failedPartOf(before);
    console.log(`again, alone: ${again.name}`);
    await runAll([again], 1);
    const after = results.pop() as JobResult;
    if (sum([after]).failed > 0) continue;
    const others = Object.fromEntries(Object.entries(before.files).filter(([, { failed }]) => failed === 0));
    results[results.indexOf(before)] = { ...before, files: { ...others, ...after.files }, failed: [] };
    replaced.push(before);
  }
  return replaced;
}

/** The CPU seconds of all processes since the machine's boot (proc_stat(5)), without idle and stolen time. */
function machineCpuSeconds(): number {
  const [, user = 0, nice = 0, system = 0] = readFileSync("/proc/stat", "utf8").split(/\s+/, 4).map(Number);
  return (user + nice + system) / 100;
}
