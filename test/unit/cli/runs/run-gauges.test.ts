import { expect } from "chai";
import { countsAsDrift, drawRunGauges } from "#cli/runs/run-gauges.ts";
import type { Outcome } from "#engine/events/event.ts";
import type { RunSummary } from "#cli/records/run-summary.ts";

interface Run {
  readonly name: string;
  readonly at: number;
  readonly state?: string;
  readonly dryRun?: boolean;
  readonly isOver?: boolean;
  /** The run did a part of its work alone. */
  readonly isPart?: boolean;
  /** An operator at a terminal started the run. */
  readonly attended?: boolean;
  readonly kind?: "state" | "orchestration";
}

function summaryOf({ name, at, state = "done", dryRun = false, isOver = true, ...run }: Run): RunSummary {
  const { kind = "state", isPart = false, attended = false } = run;
  const request = { what: { kind, names: [name], name }, dryRun, ...(isPart && { part: { only: ["x"] } }) };
  const header = { request, attended };
  const summary = { folder: { id: String(at) }, header, state, isOver, since: at, milliseconds: 500 };
  return summary as unknown as RunSummary;
}

async function samplesOf(...runs: readonly Run[]): Promise<readonly string[]> {
  const drift = ({ folder }: RunSummary) => Promise.resolve(Array<string>(Number(folder.id)).fill("n1"));
  const text = await drawRunGauges(runs.map(summaryOf), drift);
  return text.split("\n").filter((line) => line.startsWith("kcore_"));
}

describe("kcore runs stats -o prometheus", () => {
  it("tells the last run and the last dry run of each name", async () => {
    const samples = await samplesOf(
      { name: "web", at: 1000, state: "failed" },
      { name: "web", at: 2000 },
      { name: "db", at: 3000, state: "unreachable" },
      { name: "web", at: 4000, dryRun: true },
      { name: "web", at: 5000, dryRun: true },
    );
    expect(samples).to.deep.equal([
      'kcore_run_end_timestamp_seconds{run="state apply web"} 2.5',
      'kcore_run_end_timestamp_seconds{run="state apply db"} 3.5',
      'kcore_run_failed{run="state apply web"} 0',
      'kcore_run_failed{run="state apply db"} 1',
      'kcore_runs{state="failed"} 1',
      'kcore_runs{state="done"} 1',
      'kcore_runs{state="unreachable"} 1',
      'kcore_drift_timestamp_seconds{run="state apply web"} 5.5',
      'kcore_drift_steps{run="state apply web"} 5000',
      'kcore_drift_nodes{run="state apply web"} 1',
    ]);
  });

  it("keeps the last ended run while a later one is under way", async () => {
    const samples = await samplesOf(
      { name: "web", at: 1000, state: "failed" },
      { name: "web", at: 2000, state: "running", isOver: false },
    );
    expect(samples).to.contain('kcore_run_failed{run="state apply web"} 1');
    expect(samples).to.contain('kcore_runs{state="running"} 1');
  });

  it("takes no part of a run for the whole", async () => {
    const samples = await samplesOf(
      { name: "web", at: 1000, state: "failed" },
      { name: "web", at: 2000, isPart: true },
      { name: "web", at: 3000, dryRun: true },
      { name: "web", at: 4000, dryRun: true, isPart: true },
    );
    expect(samples).to.contain('kcore_run_failed{run="state apply web"} 1');
    expect(samples).to.contain('kcore_drift_steps{run="state apply web"} 3000');
  });

  it("takes the drift from dry runs without a terminal, and from none of kcore validate or doctor", async () => {
    const samples = await samplesOf(
      { name: "web", at: 1000, dryRun: true },
      { name: "web", at: 2000, dryRun: true, attended: true },
      { name: "db", at: 3000, dryRun: true, attended: true },
      { name: "validate", at: 4000, dryRun: true, kind: "orchestration" },
    );
    expect(samples.filter((line) => !line.includes("_nodes"))).to.deep.equal([
      'kcore_drift_timestamp_seconds{run="state apply web"} 1.5',
      'kcore_drift_steps{run="state apply web"} 1000',
    ]);
  });

  it("counts no step that every run carries out", () => {
    const step = { type: "step.finished", node: "n1", stage: "s", step: "s/a", title: "a", module: "m" } as const;
    const counts = (more: { outcome: Outcome; always?: boolean }) => countsAsDrift({ seq: 1, at: 1, ...step, ...more });
    expect(counts({ outcome: "would-change" })).to.equal(true);
    expect(counts({ outcome: "would-change", always: true })).to.equal(false);
    expect(counts({ outcome: "ok" })).to.equal(false);
  });

  it("prints nothing without a run", async () => {
    expect(await samplesOf()).to.deep.equal([]);
  });
});
