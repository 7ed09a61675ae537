import { formatDuration } from "#base/units.ts";
import type { RunEvent } from "#engine/events/event.ts";
import type { RunModel, StepModel } from "#engine/events/run-model.ts";
import { describeDiff, describeEvent, nodeLine, type PlainLine } from "./describe-event.ts";
import { busyTime, tallyOf, tallyOfNode } from "./tally.ts";
import { stepIn, withoutWave, workIn } from "./work-item.ts";

/** The amount of detail: `quiet` has failures, warnings and questions, `brief` has changes, too, `verbose` everything. */
export type Detail = "quiet" | "brief" | "verbose";

export interface EventLines {
  readonly lines: readonly PlainLine[];
  /** Details that may be folded under a title; `since`: milliseconds since the epoch. */
  readonly folded?: { readonly title: string; readonly since: number; readonly lines: readonly PlainLine[] };
}

type StepOrAction = Extract<RunEvent, { type: `step.${string}` | `action.${string}` }>;
type EndEvent = Extract<RunEvent, { type: "step.finished" | "action.finished" }>;

const noLines: EventLines = { lines: [] };
/** Milliseconds after which lines report work that is in order, too, because the operator waits for it. */
export const longMs = 5000;
/** Up to so many lines of output are not folded. */
const mostUnfolded = 5;

/** Makes the lines of each event of a run in `quiet` and `brief`; takes the events in order. */
export class BriefLines {
  readonly #quiet: boolean;
  /** Whether output waits for the end of its step, to be folded, or to be printed only after a failure. */
  readonly #holdsOutput: boolean;
  /** Steps and actions whose start has a line. */
  readonly #named = new Set<string>();
  /** Output that waits for the end of its step or action. */
  readonly #heldOutput = new Map<string, PlainLine[]>();
  /** The last note of each step or action that began a moment ago, and when to show the note if the step still runs. */
  readonly #heldNotes = new Map<string, { readonly due: number; readonly lines: readonly PlainLine[] }>();
  /** Stages of nodes whose steps in order already have their line. */
  readonly #counted = new Set<string>();
  /** Nodes whose lost or repeated connection a line has reported: their return is news. */
  readonly #disconnected = new Set<string>();

  constructor({ detail, folds }: { readonly detail: "quiet" | "brief"; readonly folds: boolean }) {
    this.#quiet = detail === "quiet";
    this.#holdsOutput = folds || this.#quiet;
  }

  /** The lines of an event, after the held-back notes that are due. `before`: the run without the event. */
  linesOf(before: RunModel, event: RunEvent): EventLines {
    const own = this.#describe(before, event);
    const late = this.overdue(event.at);
    return late.length === 0 ? own : { ...own, lines: [...late, ...own.lines] };
  }

  /** The held-back notes that are due at `now`, in milliseconds since the epoch; each note is returned once. */
  overdue(now: number): readonly PlainLine[] {
    const due = [...this.#heldNotes].filter(([, note]) => note.due <= now);
    for (const [key] of due) {
      this.#heldNotes.delete(key);
      this.#named.add(key);
    }
    return due.flatMap(([, { lines }]) => lines);
  }

  #describe(before: RunModel, event: RunEvent): EventLines {
    switch (event.type) {
      case "stage.finished":
      case "node.milestone":
        return noLines;
      case "node.sending": {
        const since = before.nodes.get(event.node)?.sending?.since ?? event.at;
        return this.#quiet || event.at - since < longMs ? noLines : { lines: describeEvent(before, event) };
      }
      case "node.sent":
        return this.#quiet || event.duration < longMs ? noLines : { lines: describeEvent(before, event) };
      case "action.started":
      case "step.started":
        return { lines: this.#leaveStage(before, event) };
      case "run.started":
        // A resumed run begins its stages again.
        for (const state of [this.#named, this.#heldOutput, this.#heldNotes, this.#counted, this.#disconnected])
          state.clear();
        return this.#quiet ? noLines : { lines: describeEvent(before, event) };
      case "node.disconnected":
      case "node.waiting":
      case "node.rebooted":
      case "node.connecting": {
        const lines = describeEvent(before, event);
        if (lines.length > 0) this.#disconnected.add(event.node);
        return this.#quiet && event.type !== "node.disconnected" ? noLines : { lines };
      }
      case "node.connected":
        return this.#disconnected.delete(event.node) && !this.#quiet
          ? { lines: describeEvent(before, event) }
          : noLines;
      case "step.note":
      case "action.note":
      case "step.output":
      case "action.output":
        return { lines: this.#noteOrOutput(before, event) };
      case "step.finished":
      case "action.finished":
        return this.#end(before, event);
      case "node.finished": {
        const { node, outcome } = event;
        const stageLines = this.#leaveStage(before, event);
        if (outcome !== "done") return { lines: [...stageLines, ...describeEvent(before, event)] };
        return this.#quiet
          ? noLines
          : { lines: [...stageLines, nodeLine("done", node, `done${countsOf(before, node)}`)] };
      }
      default:
        return { lines: describeEvent(before, event) };
    }
  }

  /** Lines of output, and notes of long steps (in a dry run all notes); the step's name precedes the first line. */
  #noteOrOutput(before: RunModel, event: StepOrAction): readonly PlainLine[] {
    const key = workKey(event);
    const one = workIn(before, event);
    const isNote = event.type === "step.note" || event.type === "action.note";
    const lines = describeEvent(before, event).filter(({ mark }) => mark !== "started");
    const begin = this.#named.has(key) || this.#quiet ? [] : [startLine(event, before)];
    if (isNote && !before.dryRun && (!one || event.at - one.startedAt < longMs)) {
      if (one && !this.#quiet) this.#heldNotes.set(key, { due: one.startedAt + longMs, lines: [...begin, ...lines] });
      return [];
    }
    this.#heldNotes.delete(key);
    this.#named.add(key);
    if (!this.#holdsOutput || isNote) return this.#quiet ? [] : [...begin, ...lines];
    const held = this.#heldOutput.get(key) ?? [];
    held.push(...lines);
    this.#heldOutput.set(key, held);
    return begin;
  }

  #end(before: RunModel, event: EndEvent): EventLines {
    const key = workKey(event);
    const { outcome, duration = 0 } = event;
    const held = this.#heldOutput.get(key) ?? [];
    this.#heldOutput.delete(key);
    this.#heldNotes.delete(key);
    const wasNamed = this.#named.delete(key);
    const stageLines = outcome === "skipped" ? [] : this.#leaveStage(before, event);
    if (outcome === "failed") return { lines: [...stageLines, ...held, ...describeEvent(before, event)] };
    if (this.#quiet) return noLines;
    if (outcome === "ok" || outcome === "skipped") {
      const isLong = event.type === "action.finished" && duration >= longMs;
      return { lines: wasNamed || isLong ? [...stageLines, ...describeEvent(before, event)] : stageLines };
    }
    const { diff, ...rest } = { diff: undefined, ...event };
    const more = [...held, ...(event.type === "step.finished" ? describeDiff(event.node, diff) : [])];
    const lines = [...stageLines, ...describeEvent(before, rest)];
    if (!this.#holdsOutput || more.length <= mostUnfolded) return { lines: [...lines, ...more] };
    const since = workIn(before, event)?.startedAt ?? event.at;
    return { lines, folded: { title: `${startLine(event, before).text}: ${more.length} lines`, since, lines: more } };
  }

  /** The line that counts the steps in order of a node's former stage, once the node enters its next stage. */
  #leaveStage(before: RunModel, event: RunEvent): readonly PlainLine[] {
    const name = "node" in event ? event.node : "item" in event ? event.item : undefined;
    const steps = (name !== undefined && before.nodes.get(name)?.steps) || [];
    // Steps that are skipped from the start come before their stages.
    const stage = steps.findLast(({ outcome }) => outcome !== "skipped")?.stage;
    if (name === undefined || stage === undefined || ("stage" in event && event.stage === stage)) return [];
    const key = JSON.stringify([name, stage]);
    if (this.#quiet || this.#counted.has(key)) return [];
    this.#counted.add(key);
    return describeStage(name, stage, steps);
  }
}

function describeStage(node: string, stage: string, all: readonly StepModel[]): readonly PlainLine[] {
  const steps = all.filter((step) => step.stage === stage);
  const inOrder = steps.filter(({ outcome }) => outcome === "ok");
  const time = busyTime(inOrder, 0);
  const { skipped, run } = tallyOf(steps, time);
  if (inOrder.length === 0) return [];
  const words = run > inOrder.length ? "otherwise in order" : "in order";
  const counts = [
    inOrder.length === 1 ? "1 step" : `${inOrder.length} steps`,
    ...(skipped > 0 ? [`${skipped} skipped`] : []),
  ];
  const took = time >= 1000 ? `  ${formatDuration(time)}` : "";
  return [nodeLine("done", node, `${withoutWave(stage)}  ${words}: ${counts.join(", ")}${took}`)];
}

/** “: 36 in order, 1 changed”. */
function countsOf(model: RunModel, node: string): string {
  const known = model.nodes.get(node);
  if (!known) return "";
  const { succeeded, changed, wouldChange, skipped, unknown } = tallyOfNode(model, known);
  const counts = [
    [succeeded - changed - wouldChange, "in order"],
    [changed, "changed"],
    [wouldChange, "would change"],
    [unknown, "unknown"],
    [skipped, "skipped"],
  ] as const;
  const parts = counts.filter(([count]) => count > 0).map(([count, word]) => `${count} ${word}`);
  return parts.length === 0 ? "" : `: ${parts.join(", ")}`;
}

function workKey(event: StepOrAction): string {
  return JSON.stringify("step" in event ? [event.node, event.step] : ["", event.stage, event.action, event.item]);
}

function startLine(event: StepOrAction, model: RunModel): PlainLine {
  if (!("step" in event)) return nodeLine("started", event.item ?? "bastion", `${event.stage}: ${event.action}`);
  const title = "title" in event ? event.title : stepIn(model, event)?.title;
  return nodeLine("started", event.node, title ?? event.step);
}
