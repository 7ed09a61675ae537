import type { JobResult } from "./run-job.ts";
import type { Times } from "./suites.ts";

interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

/** The sum of the counts of all files of these jobs. */
export function sum(results: readonly JobResult[]): Counts {
  const total = { passed: 0, failed: 0, skipped: 0 };
  for (const { files } of results)
    for (const counts of Object.values(files)) {
      total.passed += counts.passed;
      total.failed += counts.failed;
      total.skipped += counts.skipped;
    }
  return total;
}

/** `1 passed, 0 failed, 2 skipped`: the line that a run ends with. */
export function countsLine({ passed, failed, skipped }: Counts): string {
  return `${passed} passed, ${failed} failed, ${skipped} skipped`;
}

/** The line of a job that has ended. */
export function jobLine(result: JobResult): string {
  const { job, seconds, cpu } = result;
  const counts = sum([result]);
  const word = counts.failed > 0 ? "FAILED" : "ok";
  return `${word.padEnd(6)} ${pad(seconds)} s ${pad(cpu)} s CPU  ${job.name}: ${countsLine(counts)}`;
}

/**
 * The report of a run, as lines: tests, CPU and time of each suite; the ten longest jobs with the jobs that ran at the same time; the ten
 * files with the most CPU time; tests that passed only when run again (`flaky`); and failures.
 */
export function drawReport(
  results: readonly JobResult[],
  flaky: readonly JobResult[],
  all: { readonly seconds: number; readonly machineCpu: number; readonly cores: number },
): string[] {
  const suites = Map.groupBy(results, ({ job }) => job.suite);
  const rows = [...suites].map(([suite, of]) => {
    const { passed, failed, skipped } = sum(of);
    const cpu = of.reduce((total, result) => total + result.cpu, 0);
    const longest = of.reduce((most, { seconds }) => Math.max(most, seconds), 0);
    return `${suite.padEnd(12)} ${pad(passed + failed + skipped)} tests ${pad(cpu)} s CPU, longest job ${pad(longest)} s`;
  });
  const busy = Math.round((all.machineCpu / all.seconds / all.cores) * 100);
  const slowest = results.toSorted((a, b) => b.seconds - a.seconds).slice(0, 10);
  return [
    "== by suite",
    ...rows,
    `${"all".padEnd(12)} ${pad(all.seconds)} s; the machine, with lab machines and daemons: ${pad(all.machineCpu)} s CPU, ${busy} % of its ${all.cores} cores`,
    "== the ten that took longest",
    ...slowest.map(({ job, seconds, cpu, beside }) => {
      const others = beside.slice(0, 4).join("; ");
      return `${pad(seconds)} s ${pad(cpu)} s CPU  ${job.name} (beside it ${beside.length}${others ? `: ${others}` : ""})`;
    }),
    "== the ten files that computed most",
    ...results
      .flatMap(({ job, cpu, files }) =>
        Object.entries(files).map(([name, file]) => ({ name, cpu: job.files.length > 1 ? file.cpu : cpu })),
      )
      .toSorted((a, b) => b.cpu - a.cpu)
      .slice(0, 10)
      .map(({ name, cpu }) => `${pad(cpu)} s CPU  ${name}`),
    ...flaky.flatMap(({ failed }) =>
      failed.map(
        ({ file, title, message }) => `failed once, passed when run again alone: ${file}: ${title}: ${message}`,
      ),
    ),
    ...results.flatMap(({ failed }) =>
      failed.map(({ file, title, message }) => `failed: ${file}: ${title}: ${message}`),
    ),
  ];
}

/** The entries of `times.json` for these results: seconds and CPU seconds of each file and check that took 1.5 s or more. */
export function timesOf(results: readonly JobResult[]): Times {
  const rows = results.flatMap(({ job, files, seconds, cpu }) => {
    if (job.files.length <= 1) return [[job.name, [round(seconds), round(cpu)]] as const];
    return Object.entries(files).map(([name, file]) => [name, [round(file.seconds), round(file.cpu)]] as const);
  });
  return Object.fromEntries(rows.filter(([, [seconds]]) => seconds >= 1.5).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function pad(value: number): string {
  return (value < 10 ? value.toFixed(1) : value.toFixed(0)).padStart(6);
}
