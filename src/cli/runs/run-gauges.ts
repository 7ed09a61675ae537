import { drawGauges } from "#base/gauges.ts";
import type { RunEvent } from "#engine/events/event.ts";
import { titleOf } from "#engine/orchestrate/run-types.ts";
import { scanRecord } from "../records/known-run.ts";
import { failedStates, type RunSummary } from "../records/run-summary.ts";

/** The nodes of the steps that a recorded dry run would change, one entry a step. */
async function readDrift({ folder }: RunSummary): Promise<readonly string[]> {
  const nodes: string[] = [];
  for await (const event of scanRecord(folder, /"type":"step\.finished"/))
    if (countsAsDrift(event)) nodes.push(event.node);
  return nodes;
}

/** Whether a step of a dry run differs from its node; a step that every run carries out tells nothing. */
export function countsAsDrift(event: RunEvent): event is Extract<RunEvent, { type: "step.finished" }> {
  return event.type === "step.finished" && event.outcome === "would-change" && event.always !== true;
}

/**
 * `kcore runs stats -o prometheus`: the last whole run of each name and the drift that its last measuring dry run found, for
 * node-exporter's textfile folder. `runs`: oldest first; `driftOf` reads a dry run.
 */
export async function drawRunGauges(runs: readonly RunSummary[], driftOf = readDrift): Promise<string> {
  const real = runs.filter(({ header }) => !header.request.dryRun);
  const last = lastOfEach(real);
  const dry = lastOfEach(runs.filter(measuresDrift));
  const drifts = await Promise.all(dry.map(async (run) => [labelOf(run), await driftOf(run)] as const));
  const ends = (all: readonly RunSummary[]) =>
    all.map((run) => [labelOf(run), (run.since + run.milliseconds) / 1000] as const);
  const byState = Map.groupBy(real, ({ state }) => state);
  const failed = last.map((run) => [labelOf(run), Number(failedStates.includes(run.state))] as const);
  return drawGauges([
    ["kcore_run_end_timestamp_seconds", "When the last run of this name ended.", ends(last)],
    ["kcore_run_failed", "Whether the last run of this name failed.", failed],
    ["kcore_runs", "Recorded runs, by state.", [...byState].map(([state, { length }]) => [{ state }, length])],
    ["kcore_drift_timestamp_seconds", "When the last dry run without a terminal of this name ended.", ends(dry)],
    [
      "kcore_drift_steps",
      "Steps that this dry run would change.",
      drifts.map(([label, nodes]) => [label, nodes.length]),
    ],
    ["kcore_drift_nodes", "Nodes of those steps.", drifts.map(([label, nodes]) => [label, new Set(nodes).size])],
  ]);
}

/** Whether a run is a scheduled dry run: an operator at a terminal repeats no dry run, and the checks of kcore validate are no drift. */
function measuresDrift({ header: { request, attended } }: RunSummary): boolean {
  const { what, dryRun } = request;
  return dryRun && !attended && !(what.kind === "orchestration" && what.name === "validate");
}

/** The last ended run of each name that did all its work. */
function lastOfEach(runs: readonly RunSummary[]): readonly RunSummary[] {
  const over = runs.filter(({ isOver, header }) => isOver && !header.request.part);
  return [...new Map(over.map((run) => [labelOf(run).run, run])).values()];
}

function labelOf({ header: { request } }: RunSummary): { readonly run: string } {
  return { run: titleOf(request.what) };
}
