import { drawGauges, type Gauge } from "#base/gauges.ts";
import { titleOf } from "#engine/orchestrate/run-types.ts";
import { scanRecord } from "../records/known-run.ts";
import { failedStates, type RunSummary } from "../records/run-summary.ts";

/** The steps that a dry run would change, and their nodes. */
export interface Drift {
  readonly steps: number;
  readonly nodes: number;
}

/** Counts the changes that a recorded dry run found. */
export async function readDrift({ folder }: Pick<RunSummary, "folder">): Promise<Drift> {
  const nodes = new Set<string>();
  let steps = 0;
  for await (const event of scanRecord(folder, /"type":"step\.finished"/)) {
    if (event.type !== "step.finished" || event.outcome !== "would-change") continue;
    nodes.add(event.node);
    steps++;
  }
  return { steps, nodes: nodes.size };
}

/**
 * `kcore runs stats -o prometheus`: the last run of each name and the drift that its last dry run found, for node-exporter's textfile
 * folder. `runs`: oldest first; `driftOf` reads a dry run.
 */
export async function drawRunGauges(
  runs: readonly RunSummary[],
  driftOf: (run: RunSummary) => Promise<Drift> = readDrift,
): Promise<string> {
  const over = runs.filter(({ isOver }) => isOver);
  const real = lastOfEach(over.filter(({ header }) => !header.request.dryRun));
  const dry = await Promise.all(
    lastOfEach(over.filter(({ header }) => header.request.dryRun)).map(async (run) => ({
      run,
      drift: await driftOf(run),
    })),
  );
  const byState = Map.groupBy(
    runs.filter(({ header }) => !header.request.dryRun),
    ({ state }) => state,
  );
  return drawGauges([
    gauge(
      "kcore_run_end_timestamp_seconds",
      "When the last run of this name ended.",
      real.map((run) => [labelOf(run), endOf(run)]),
    ),
    gauge(
      "kcore_run_failed",
      "Whether the last run of this name failed.",
      real.map((run) => [labelOf(run), Number(failedStates.includes(run.state))]),
    ),
    gauge(
      "kcore_runs",
      "Recorded runs, by state.",
      [...byState].map(([state, { length }]) => [{ state }, length]),
    ),
    gauge(
      "kcore_drift_timestamp_seconds",
      "When the last dry run of this name ended.",
      dry.map(({ run }) => [labelOf(run), endOf(run)]),
    ),
    gauge(
      "kcore_drift_steps",
      "Steps that the last dry run of this name would change.",
      dry.map(({ run, drift }) => [labelOf(run), drift.steps]),
    ),
    gauge(
      "kcore_drift_nodes",
      "Nodes that the last dry run of this name would change.",
      dry.map(({ run, drift }) => [labelOf(run), drift.nodes]),
    ),
  ]);
}

function lastOfEach(runs: readonly RunSummary[]): readonly RunSummary[] {
  return [...new Map(runs.map((run) => [labelOf(run).run, run])).values()];
}

function labelOf({ header: { request } }: RunSummary): { readonly run: string } {
  return { run: titleOf(request.what) };
}

/** The end of a run that is over, in seconds since the epoch. */
function endOf({ since, milliseconds }: RunSummary): number {
  return (since + milliseconds) / 1000;
}

function gauge(name: string, help: string, samples: Gauge["samples"]): Gauge {
  return { name, help, samples };
}
