import type { Outcome } from "#engine/events/event.ts";
import type { StageModel } from "#engine/events/run-model.ts";
import type { NodeRow, RowState } from "../node-row.ts";
import { span, type Span } from "./text.ts";
import type { Glyphs, TextRole } from "./theme.ts";

/** The picture of the wheel of running work; the next picture comes each second. */
export function runningMark({ running }: Glyphs, now: number): string {
  return running[Math.floor(now / 1000) % running.length] ?? "";
}

/** A shape, and the colour that repeats its meaning. */
type Mark = readonly [shape: keyof Glyphs, role: TextRole];

const wheel: Mark = ["running", "running"];
const outcomes: Readonly<Record<Outcome, Mark>> = {
  ok: ["ok", "ok"],
  changed: ["changed", "changed"],
  "would-change": ["wouldChange", "changed"],
  failed: ["failed", "failed"],
  skipped: ["skipped", "muted"],
  unknown: ["unknown", "warning"],
  interrupted: ["interrupted", "warning"],
};
const states: Readonly<Record<RowState, Mark>> = {
  failed: ["failed", "failed"],
  unreachable: ["failed", "failed"],
  running: wheel,
  connecting: wheel,
  rebooting: ["running", "warning"],
  lost: ["warning", "warning"],
  waiting: ["warning", "warning"],
  asking: ["unknown", "warning"],
  interrupted: ["interrupted", "warning"],
  unfinished: ["interrupted", "warning"],
  idle: ["pending", "muted"],
  pending: ["pending", "muted"],
  "not-started": ["skipped", "muted"],
  done: ["ok", "ok"],
};

function drawMark([shape, role]: Mark, glyphs: Glyphs, now: number): Span {
  return span(shape === "running" ? runningMark(glyphs, now) : glyphs[shape], role);
}

/** A step's outcome as a shape; the label stands beside it wherever there is room. */
export function outcomeMark(outcome: Outcome | undefined, glyphs: Glyphs, now: number): Span {
  return drawMark(outcome === undefined ? wheel : outcomes[outcome], glyphs, now);
}

export function stageMark({ state }: Pick<StageModel, "state">, glyphs: Glyphs, now: number): Span {
  if (state === "pending") return span(glyphs.pending, "muted");
  return outcomeMark(state === "running" ? undefined : state, glyphs, now);
}

export function stateRole(state: RowState): TextRole {
  return states[state][1];
}

export function stateLabel({ state }: Pick<NodeRow, "state">): string {
  if (state === "unfinished") return "not finished";
  if (state === "asking") return "waiting for you";
  return state === "lost" ? "reconnecting" : state.replace("-", " ");
}

/** The shape of a row's state; a node that is done with changes has the shape of a change. */
export function stateMark(
  { state, changed, isForeseen }: Pick<NodeRow, "state" | "changed" | "isForeseen">,
  glyphs: Glyphs,
  now: number,
): Span {
  const isDifferent = state === "done" && changed > 0;
  return drawMark(isDifferent ? outcomes[isForeseen ? "would-change" : "changed"] : states[state], glyphs, now);
}
