import { formatDuration } from "#base/units.ts";
import type { RunEvent } from "#engine/events/event.ts";
import type { RunModel, StepModel } from "#engine/events/run-model.ts";
import { describeDiff, describeEvent, line, type PlainLine } from "./describe-event.ts";
import { busyTime, tallyOf, tallyOfNode } from "./tally.ts";
import { stepIn, withoutWave, workIn } from "./work-item.ts";

/** The amount of detail: `quiet` prints failures, `brief` changes too, `verbose` everything. */
export type Detail = "quiet" | "brief" | "verbose";

/** The lines of an event. */
export interface EventLines {
  readonly lines: readonly PlainLine[];
  /** Details that may be folded under a title. */
  readonly folded?: { readonly title: string; readonly since: number; readonly lines: readonly PlainLine[] };
}

type StepOrAction = Extract<RunEvent, { type: `step.${string}` | `action.${string}` }>;
type EndEvent = Extract<RunEvent, { type: "step.finished" | "action.finished" }>;

const nothing: EventLines = { lines: [] };
/** Milliseconds after which lines report work in order, too, because the operator waits for it. */
export const longMs = 5000;
/** Up to so many lines of output are not folded. */
const mostUnfolded = 5;

/** The brief lines of each event of a run; they need the run before the event. */
export class BriefLines {
  readonly #quiet: boolean;
  /** Whether output is kept until its step has ended, to be folded or left out. */
  readonly #keeps: boolean;
  /** Steps and actions whose start has a line. */
  readonly #begun = new Set<string>();
  readonly #kept = new Map<string, PlainLine[]>();
  /** The last note of each step or action that began a moment ago, and when to show the note if the step still runs. */
  readonly #early = new Map<string, { readonly due: number; readonly lines: readonly PlainLine[] }>();
  /** Stages of nodes whose steps in order already have their line. */
  readonly #left = new Set<string>();
  /** Nodes that a line has reported as unreachable: their return is news. */
  readonly #away = new Set<string>();

  constructor({ detail, folds }: { readonly detail: "quiet" | "brief"; readonly folds: boolean }) {
    this.#quiet = detail === "quiet";
    this.#keeps = folds || this.#quiet;
  }

  linesOf(before: RunModel, event: RunEvent): EventLines {
    const told = this.#describe(before, event);
    const late = this.overdue(event.at);
    return late.length === 0 ? told : { ...told, lines: [...late, ...told.lines] };
  }

  /** The held-back notes of steps and actions that still run at `now`. */
  overdue(now: number): readonly PlainLine[] {
    const due = [...this.#early].filter(([, early]) => early.due <= now);
    for (const [key] of due) {
      this.#early.delete(key);
      this.#begun.add(key);
    }
    return due.flatMap(([, { lines }]) => lines);
  }

  #describe(before: RunModel, event: RunEvent): EventLines {
    switch (event.type) {
      case "stage.finished":
      case "node.milestone":
        return nothing;
      case "node.sending": {
        const since = before.nodes.get(event.node)?.sending?.since ?? event.at;
        return this.#quiet || event.at - since < longMs ? nothing : { lines: describeEvent(before, event) };
      }
      case "node.sent":
        return this.#quiet || event.duration < longMs ? nothing : { lines: describeEvent(before, event) };
      case "action.started":
      case "step.started":
        return { lines: this.#leave(before, event) };
      case "run.started":
        // A resumed run begins its stages again.
        for (const known of [this.#begun, this.#kept, this.#early, this.#left, this.#away]) known.clear();
        return this.#quiet ? nothing : { lines: describeEvent(before, event) };
      case "node.disconnected":
      case "node.waiting":
      case "node.rebooted":
      case "node.connecting": {
        const lines = describeEvent(before, event);
        if (lines.length > 0) this.#away.add(event.node);
        return this.#quiet && event.type !== "node.disconnected" ? nothing : { lines };
      }
      case "node.connected":
        return this.#away.delete(event.node) && !this.#quiet ? { lines: describeEvent(before, event) } : nothing;
      case "step.note":
      case "action.note":
      case "step.output":
      case "action.output":
        return { lines: this.#say(before, event) };
      case "step.finished":
      case "action.finished":
        return this.#end(before, event);
      case "node.finished": {
        const { node, outcome } = event;
        const left = this.#leave(before, event);
        if (outcome !== "done") return { lines: [...left, ...describeEvent(before, event)] };
        return this.#quiet ? nothing : { lines: [...left, line("done", node, `done${countsOf(before, node)}`)] };
      }
      default:
        return { lines: describeEvent(before, event) };
    }
  }

  /** Lines of output, and notes of long steps (in a dry run all notes); the step's name precedes the first line. */
  #say(before: RunModel, event: StepOrAction): readonly PlainLine[] {
    const key = workKey(event);
    const one = workIn(before, event);
    const isNote = event.type === "step.note" || event.type === "action.note";
    const said = describeEvent(before, event).filter(({ mark }) => mark !== "started");
    const begin = this.#begun.has(key) || this.#quiet ? [] : [startLine(event, before)];
    if (isNote && !before.dryRun && (!one || event.at - one.startedAt < longMs)) {
      if (one && !this.#quiet) this.#early.set(key, { due: one.startedAt + longMs, lines: [...begin, ...said] });
      return [];
    }
    this.#early.delete(key);
    this.#begun.add(key);
    if (!this.#keeps || isNote) return this.#quiet ? [] : [...begin, ...said];
    const kept = this.#kept.get(key) ?? [];
    kept.push(...said);
    this.#kept.set(key, kept);
    return begin;
  }

  #end(before: RunModel, event: EndEvent): EventLines {
    const key = workKey(event);
    const { outcome, duration = 0 } = event;
    const kept = this.#kept.get(key) ?? [];
    this.#kept.delete(key);
    this.#early.delete(key);
    const wasNamed = this.#begun.delete(key);
    const left = outcome === "skipped" ? [] : this.#leave(before, event);
    if (outcome === "failed") return { lines: [...left, ...kept, ...describeEvent(before, event)] };
    if (this.#quiet) return nothing;
    if (outcome === "ok" || outcome === "skipped") {
      const isLong = event.type === "action.finished" && duration >= longMs;
      return { lines: wasNamed || isLong ? [...left, ...describeEvent(before, event)] : left };
    }
    const { diff, ...rest } = { diff: undefined, ...event };
    const more = [...kept, ...(event.type === "step.finished" ? describeDiff(event.node, diff) : [])];
    const lines = [...left, ...describeEvent(before, rest)];
    if (!this.#keeps || more.length <= mostUnfolded) return { lines: [...lines, ...more] };
    const since = workIn(before, event)?.startedAt ?? event.at;
    return { lines, folded: { title: `${startLine(event, before).text}: ${more.length} lines`, since, lines: more } };
  }

  /** When a node enters its next stage: the line that counts the former stage's steps in order. */
  #leave(before: RunModel, event: RunEvent): readonly PlainLine[] {
    const name = "node" in event ? event.node : "item" in event ? event.item : undefined;
    const steps = (name !== undefined && before.nodes.get(name)?.steps) || [];
    // Steps that are skipped from the start come before their stages.
    const stage = steps.findLast(({ outcome }) => outcome !== "skipped")?.stage;
    if (name === undefined || stage === undefined || ("stage" in event && event.stage === stage)) return [];
    const key = JSON.stringify([name, stage]);
    if (this.#quiet || this.#left.has(key)) return [];
    this.#left.add(key);
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
  return [line("done", node, `${withoutWave(stage)}  ${words}: ${counts.join(", ")}${took}`)];
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
  const told = counts.filter(([count]) => count > 0).map(([count, word]) => `${count} ${word}`);
  return told.length === 0 ? "" : `: ${told.join(", ")}`;
}

function workKey(event: StepOrAction): string {
  return JSON.stringify("step" in event ? [event.node, event.step] : ["", event.stage, event.action, event.item]);
}

function startLine(event: StepOrAction, model: RunModel): PlainLine {
  if (!("step" in event)) return line("started", event.item ?? "bastion", `${event.stage}: ${event.action}`);
  const title = "title" in event ? event.title : stepIn(model, event)?.title;
  return line("started", event.node, title ?? event.step);
}
