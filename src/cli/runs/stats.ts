import { formatDuration } from "#base/units.ts";
import type { RunEvent } from "#engine/events/event.ts";
import { RunStats, type StatsOfRuns, type StepStats } from "#tui/run-stats.ts";
import type { CommonFlags } from "../options.ts";
import { findProject } from "../project/find-project.ts";
import { formatTable } from "../terminal/format-table.ts";
import { scanRecord } from "../records/known-run.ts";
import { findRuns, type RunFilter, type RunSummary } from "../records/run-summary.ts";
import { printResult } from "../terminal/format-result.ts";

export interface StatsFlags extends CommonFlags, RunFilter {
  readonly output: "table" | "json" | "prometheus";
}

/** The most rows of the tables of steps; `-o json` has all. */
const maxRows = 10;

/** `kcore runs stats`: prints the slowest and the flakiest steps of recorded runs, and the time that each node takes; or gauges for Prometheus. */
export async function showStats({ project, output, ...filter }: StatsFlags): Promise<void> {
  const repeatable = (await findRuns(findProject(project), filter)).filter(isRepeatable);
  if (output === "prometheus") {
    const { drawRunGauges } = await import("./run-gauges.ts");
    return void process.stdout.write(await drawRunGauges(repeatable));
  }
  // A dry run takes other times.
  const found = repeatable.filter(({ header }) => !header.request.dryRun);
  const stats = new RunStats();
  for (const { folder } of found) {
    stats.begin(folder.id);
    for await (const event of scanRecord(folder, /"type":"(?:step|action|node)\.finished"/))
      if (concerns(event, filter.node)) stats.add(event);
  }
  const result = stats.result();
  const created = found.map(({ header }) => header.created);
  const draw = () => (found.length === 0 ? "no such run\n" : drawStats(created, result));
  printResult({ runs: found.length, ...result }, output, draw);
}

/** Whether a run counts: an ad hoc command is not repeated. */
function isRepeatable({ header: { request } }: RunSummary): boolean {
  return request.what.kind === "orchestration" || request.what.kind === "state";
}

/** Whether an event is about one of the nodes; every event is, without nodes. */
function concerns(event: RunEvent, nodes: readonly string[] | undefined): boolean {
  const node = "node" in event ? event.node : "item" in event ? event.item : undefined;
  return nodes === undefined || (node !== undefined && nodes.includes(node));
}

/** The statistics as tables. `created`: the start times of the runs, oldest first, at least one. */
export function drawStats(created: readonly number[], { steps, nodes }: StatsOfRuns): string {
  const days = created.map((at) => new Date(at).toISOString().slice(0, 10));
  const runs = days.length === 1 ? `1 run of ${days[0]}` : `${days.length} runs from ${days[0]} to ${days.at(-1)}`;
  const slow = steps.filter(({ usual }) => usual !== undefined).slice(0, maxRows);
  const flaky = steps.filter((step) => step.flaky).toSorted((a, b) => failureShare(b) - failureShare(a));
  const machines = nodes.filter(({ node }) => node !== "bastion").length;
  const parts = [
    `${runs}, ${machines === 1 ? "1 node" : `${machines} nodes`}\n`,
    table(["STEP", "MODULE", "TIMES", "USUAL", "LONGEST", "ON"], slow, ({ title, module, times, ...step }) => [
      title,
      module,
      String(times),
      time(step.usual),
      time(step.longest),
      `${step.longestOn} in ${step.longestIn}`,
    ]),
    table(
      ["FLAKY STEP", "MODULE", "FAILED", "ON"],
      flaky.slice(0, maxRows),
      ({ title, module, times, failed, ...step }) => [
        title,
        module,
        `${failed} of ${times}`,
        step.nodes
          .filter((ends) => ends.failed > 0)
          .map((ends) => `${ends.node} (${ends.failed} of ${ends.times})`)
          .join(", "),
      ],
    ),
    table(["NODE", "RUNS", "FAILED", "UNREACHABLE", "TIME", "SLOWEST STEP"], nodes, ({ node, slowest, ...one }) => [
      node,
      String(one.runs),
      String(one.failed),
      String(one.unreachable),
      time(one.time),
      slowest ? `${slowest.title} ${time(slowest.usual)}` : "–",
    ]),
  ];
  return parts.filter((part) => part !== "").join("\n");
}

function table<Row>(heading: readonly string[], rows: readonly Row[], cells: (row: Row) => readonly string[]): string {
  return rows.length === 0 ? "" : formatTable(heading, rows.map(cells));
}

function failureShare({ failed, times }: StepStats): number {
  return failed / times;
}

function time(milliseconds: number | undefined): string {
  return milliseconds === undefined ? "–" : formatDuration(milliseconds);
}
