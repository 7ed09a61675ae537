import type { Outcome } from "#engine/events/event.ts";
import type { StageModel } from "#engine/events/run-model.ts";
import type { NodeRow, RowState } from "../node-row.ts";
import { span, type Span } from "./text.ts";
import type { Glyphs, Role } from "./theme.ts";

/** The wheel of running work; it turns once a second. */
export function runningMark({ running }: Glyphs, now: number): string {
  return running[Math.floor(now / 1000) % running.length] ?? "";
}

/** A step's outcome as a shape; the label stands beside it wherever there is room. */
export function outcomeMark(outcome: Outcome | undefined, glyphs: Glyphs, now: number): Span {
  switch (outcome) {
    case undefined:
      return span(runningMark(glyphs, now), "running");
    case "ok":
      return span(glyphs.ok, "ok");
    case "changed":
      return span(glyphs.changed, "changed");
    case "would-change":
      return span(glyphs.wouldChange, "changed");
    case "failed":
      return span(glyphs.failed, "failed");
    case "skipped":
      return span(glyphs.skipped, "muted");
    case "unknown":
      return span(glyphs.unknown, "warning");
    case "interrupted":
      return span(glyphs.interrupted, "warning");
  }
}

export function stageMark({ state }: Pick<StageModel, "state">, glyphs: Glyphs, now: number): Span {
  if (state === "pending") return span(glyphs.pending, "muted");
  return outcomeMark(state === "running" ? undefined : state, glyphs, now);
}

export function stateRole(state: RowState): Role {
  switch (state) {
    case "failed":
    case "unreachable":
      return "failed";
    case "running":
    case "connecting":
      return "running";
    case "lost":
    case "rebooting":
    case "waiting":
    case "asking":
    case "interrupted":
    case "unfinished":
      return "warning";
    case "idle":
    case "pending":
    case "not-started":
      return "muted";
    case "done":
      return "ok";
  }
}

export function stateLabel({ state }: Pick<NodeRow, "state">): string {
  if (state === "unfinished") return "not finished";
  if (state === "asking") return "waiting for you";
  return state === "lost" ? "reconnecting" : state.replace("-", " ");
}

export function stateMark(
  { state, changed, isForeseen }: Pick<NodeRow, "state" | "changed" | "isForeseen">,
  glyphs: Glyphs,
  now: number,
): Span {
  const role = stateRole(state);
  switch (state) {
    case "failed":
    case "unreachable":
      return span(glyphs.failed, role);
    case "running":
    case "connecting":
    case "rebooting":
      return span(runningMark(glyphs, now), role);
    case "asking":
      return span(glyphs.unknown, role);
    case "lost":
    case "waiting":
      return span(glyphs.warning, role);
    case "interrupted":
    case "unfinished":
      return span(glyphs.interrupted, role);
    case "not-started":
      return span(glyphs.skipped, role);
    case "idle":
    case "pending":
      return span(glyphs.pending, role);
    case "done":
      return changed > 0 ? span(isForeseen ? glyphs.wouldChange : glyphs.changed, "changed") : span(glyphs.ok, role);
  }
}
