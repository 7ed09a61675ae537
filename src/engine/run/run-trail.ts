import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { join } from "node:path";
import { appendEntry } from "#audit/append-entry.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import type { RunEvent, RunEventBody } from "#engine/events/event.ts";
import type { RunFolder } from "./run-folder.ts";

type RunStarted = Extract<RunEventBody, { type: "run.started" }>;

/** The folder of the audit trail of a project's runs. */
export function trailFolder(project: string): string {
  return join(project, ".kcore", "audit");
}

/** A trail's entry of a run that began. */
export type RunBegan = Pick<RunStarted, "type" | "who" | "command" | "dryRun" | "revision" | "dirty"> & {
  readonly run: string;
  readonly resumed: boolean;
  /** SHA-256 of the plan: the stages and their nodes as JSON. */
  readonly plan: string;
  readonly nodes: number;
};

/** A trail's entry of a run that ended; a run that died has none. */
export interface RunEnded {
  readonly type: "run.finished";
  readonly run: string;
  readonly outcome: string;
  readonly exitCode: number;
  /** How each node ended, and how many of its steps changed something. */
  readonly nodes: Readonly<Record<string, { readonly outcome: string; readonly changed: number }>>;
  /** The record so far: its bytes and their SHA-256. */
  readonly record: { readonly bytes: number; readonly sha256: string };
}

/** A trail's entry of runs whose records a command of kcore removed. */
export interface RunsPruned {
  readonly type: "runs.pruned";
  readonly who: string;
  readonly runs: readonly string[];
}

/** A trail's entry of an `exec`, `ping`, `facts` or `node unlock`, written before it connects: such a command has no record. */
export interface AdHocBegan {
  readonly type: "adhoc.started";
  readonly who: string;
  readonly command: string;
  readonly nodes: readonly string[];
}

/** A trail's entry of a look at nodes by `kcore drift`, or of a pass of `kcore reconcile`, with more facts of that pass. */
export interface DriftFound {
  readonly type: "drift.found" | "reconcile.pass";
  readonly who: string;
  readonly command: string;
  readonly revision?: string;
  /** By node, the steps that differ from the project. */
  readonly differs: Readonly<Record<string, readonly string[]>>;
  /** Nodes that could not be compared. */
  readonly away?: readonly string[];
  /** Of a pass: the reasons why it did not do all, and the messages for a person. */
  readonly reasons?: readonly string[];
}

export type RunsEntry = RunBegan | RunEnded | RunsPruned | AdHocBegan | DriftFound;

/** Appends an entry to the audit trail of a project's runs. @throws NodeJS.ErrnoException as appendEntry does */
export function recordRuns(project: string, at: number, entry: RunsEntry): void {
  appendEntry(trailFolder(project), at, { ...entry });
}

/** Handles the events of one run, and puts the run's beginning and end into the project's audit trail (S-27). */
export class RunTrail {
  readonly #folder: RunFolder;
  readonly #now: () => number;
  readonly #nodes = new Map<string, { outcome: string; changed: number }>();
  readonly #changed = new Set<string>();
  #hasBegun = false;

  constructor(folder: RunFolder, now: () => number, earlier: readonly RunEvent[] = []) {
    this.#folder = folder;
    this.#now = now;
    this.#hasBegun = earlier.length > 0;
    for (const event of earlier) this.#count(event);
  }

  /** Counts an event, and writes the run's beginning. @throws NodeJS.ErrnoException if that cannot be written: such a run must not continue */
  handle(event: RunEventBody): void {
    this.#count(event);
    if (event.type !== "run.started") return;
    this.#hasBegun = true;
    const { runId: run, who, command, dryRun, resumed = false, revision, dirty, stages, nodes } = event;
    const plan = createHash("sha256").update(JSON.stringify(stages)).digest("hex");
    const began = { run, who, command, dryRun, resumed, plan, nodes: nodes.length };
    recordRuns(this.#folder.project, this.#now(), {
      type: "run.started",
      ...began,
      ...omitUndefined({ revision, dirty }),
    });
  }

  /** To be called when the record is written to its end. @throws NodeJS.ErrnoException */
  async end({ outcome, exitCode }: { readonly outcome: string; readonly exitCode: number }): Promise<void> {
    if (!this.#hasBegun) return;
    const { id: run, project, events } = this.#folder;
    const record = await digestOf(events);
    recordRuns(project, this.#now(), {
      type: "run.finished",
      run,
      outcome,
      exitCode,
      nodes: Object.fromEntries(this.#nodes),
      record,
    });
  }

  #count(event: RunEventBody): void {
    if (event.type === "step.finished") this.#countStep(event);
    if (event.type === "node.finished") this.#of(event.node).outcome = event.outcome;
  }

  /** A changed step that was reverted does not count as changed. */
  #countStep({ node, stage, step, outcome }: Extract<RunEventBody, { type: "step.finished" }>): void {
    const id = JSON.stringify([node, stage, step]);
    if (outcome === "changed") this.#changed.add(id);
    if (outcome === "changed") this.#of(node).changed += 1;
    else if (outcome === "interrupted" && this.#changed.delete(id)) this.#of(node).changed -= 1;
  }

  #of(node: string): { outcome: string; changed: number } {
    const known = this.#nodes.get(node) ?? { outcome: "not-started", changed: 0 };
    this.#nodes.set(node, known);
    return known;
  }
}

/** Bytes and SHA-256 of a file, or of its first `bytes`. @throws NodeJS.ErrnoException */
export async function digestOf(file: string, bytes = Infinity): Promise<RunEnded["record"]> {
  const hash = createHash("sha256");
  let read = 0;
  for await (const chunk of createReadStream(file, { end: bytes - 1 }) as AsyncIterable<Buffer>) {
    hash.update(chunk);
    read += chunk.length;
  }
  return { bytes: read, sha256: hash.digest("hex") };
}
