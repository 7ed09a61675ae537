import { randomBytes } from "node:crypto";
import type { RunEventBody } from "#engine/events/event.ts";
import type { Blob } from "#engine/step/blob.ts";
import { runnerCommand, segmentCommand, type RunVariables } from "#engine/program/bootstrap.ts";
import { compileStep, type CompiledStep } from "#engine/program/compile-step.ts";
import { DryRunDependencies, type Survivals } from "#engine/program/dry-run-dependencies.ts";
import { blobsOf, type Foresight, segmentText } from "#engine/program/segment.ts";
import type { SavedGrants } from "./save-granted-tables.ts";
import type { StepReport } from "./step-report.ts";
import type { SessionEffect, ReadyStep } from "./session-events.ts";

/** The segment that was written last. */
interface WrittenSegment {
  /** The command for a living runner. */
  readonly segment: string;
  /** The command, with a new runner in front if none lives. */
  readonly flight: string;
  readonly event: RunEventBody;
}

/** Writes segments, and keeps the blobs that their steps may request. */
export class SegmentWriter {
  #run: RunVariables;
  readonly #report: StepReport;
  readonly #compiled = new WeakMap<ReadyStep, CompiledStep>();
  /** Finds the earlier steps on which a step depends; undefined outside of a dry run. */
  readonly #dependencies: DryRunDependencies | undefined;
  /** By key of a step, in a dry run: the earlier steps on which it depends. */
  readonly #dependsOn = new Map<string, Survivals>();
  /** By name on the node. */
  readonly blobs = new Map<string, Blob>();
  written: WrittenSegment | undefined;
  /** The node has booted since the session began. */
  hasBooted = false;

  constructor(run: RunVariables, report: StepReport) {
    this.#run = run;
    this.#dependencies = run.dryRun ? new DryRunDependencies() : undefined;
    this.#report = report;
  }

  /** Further runners bring these grants to the node. */
  grant({ grants, unsaved }: SavedGrants): void {
    this.#run = { ...this.#run, grants, unsaved };
  }

  write({ number, exchange, batch, launch }: Extract<SessionEffect, { do: "write-segment" }>): void {
    const steps = batch.steps.map((step) => ({ plan: step.plan, compiled: this.#compile(step) }));
    for (const [name, blob] of blobsOf(steps, this.#run)) this.blobs.set(name, blob);
    const program = segmentText({
      steps,
      facts: batch.facts,
      now: Math.round(Date.now() / 1000),
      ...(this.#dependencies && { foresight: this.#foresight() }),
    });
    // A runner that knows its last segment ends without waiting for `fin`.
    const text = batch.isLast ? `k_fin=done\n${program}` : program;
    const segment = segmentCommand(this.#run, number, text);
    const flight = launch ? this.#runner(number, text) : segment;
    const bytes = Buffer.byteLength(flight);
    const event = { type: "node.segment", node: this.#run.node, exchange, steps: steps.length, bytes } as const;
    this.written = { segment, flight, event };
  }

  #runner(segment: number, text: string): string {
    const changed = [...this.#report.records].filter(([, { outcome }]) => outcome === "changed").map(([key]) => key);
    return runnerCommand(this.#run, { segment, changed, hasBooted: this.hasBooted, text });
  }

  #foresight(): Foresight {
    const ended = new Map<string, string>();
    for (const [key, { outcome = "", isConditional }] of this.#report.records) {
      const word = outcome === "would-change" ? "would" : outcome;
      if (isConditional) ended.set(key, `${word}-if`);
      else if (word === "would" || word === "unknown") ended.set(key, word);
    }
    return { ended, dependencies: this.#dependsOn };
  }

  /** Compiles a step once: a step that is sent again requests its blobs by the same random names. */
  #compile(step: ReadyStep): CompiledStep {
    const known = this.#compiled.get(step);
    if (known) return known;
    const { key, plan, owes } = step;
    const dependencies = this.#dependencies?.next(key, plan);
    if (dependencies) this.#dependsOn.set(key, dependencies.on);
    const randomName = (): string => randomBytes(16).toString("hex");
    const compiled = compileStep(plan, { owes, randomName, ...(dependencies && { earlierChanges: dependencies }) });
    this.#compiled.set(step, compiled);
    this.#report.plan(key, plan);
    return compiled;
  }
}
