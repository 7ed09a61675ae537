import { omitUndefined } from "#base/omit-undefined.ts";
import type { Changed, Outcome, RunEvent } from "./event.ts";
import { MAX_TAIL, type ActionModel, type StepModel } from "./run-model.ts";
import { lastLines } from "./whole-lines.ts";

type EventOf<Type extends RunEvent["type"]> = Extract<RunEvent, { type: Type }>;
type StepEvent = Extract<RunEvent, { type: `step.${string}` }>;
type ActionEvent = Extract<RunEvent, { type: `action.${string}` }>;

/** The output of a step or an action after one more event. */
function withOutput(
  { tail, above = 0, streams }: Pick<StepModel, "tail" | "above" | "streams">,
  { text, at, stream }: EventOf<"step.output" | "action.output">,
): Partial<StepModel> {
  const whole = tail + text;
  const kept = lastLines(whole, MAX_TAIL);
  const lost = kept === whole ? {} : { above: above + whole.slice(0, -kept.length).split("\n").length - 1 };
  if (streams === undefined && stream === "out") return { tail: kept, heardAt: at, ...lost };
  const before = streams ?? "o".repeat(linesIn(tail));
  const letters = before + (stream === "out" ? "o" : "e").repeat(linesIn(whole) - linesIn(tail));
  return { tail: kept, heardAt: at, ...lost, streams: letters.slice(letters.length - linesIn(kept)) };
}

/** The number of lines in a text, an unfinished last one included. */
function linesIn(text: string): number {
  return text === "" ? 0 : text.split("\n").length - (text.endsWith("\n") ? 1 : 0);
}

/** The steps of a node after one more event; changes the given list in place. */
export function changeStep(steps: StepModel[], event: StepEvent): readonly StepModel[] {
  const index = steps.findLastIndex(
    ({ step, stage }) => step === event.step && (!("stage" in event) || stage === event.stage),
  );
  const found = steps[index];
  // A further attempt of a step (after a reboot, in a resumed run) takes the place of the attempt before it.
  const changed = changeOneStep(found ?? newStep(event), event);
  steps[found === undefined ? steps.length : index] = changed;
  return steps;
}

function newStep(event: StepEvent): StepModel {
  const { stage = "", title = event.step, module = "" } = event as Partial<EventOf<"step.started">>;
  return { stage, step: event.step, title, module, startedAt: event.at, changes: [], always: false, tail: "" };
}

function changeOneStep(step: StepModel, event: StepEvent): StepModel {
  switch (event.type) {
    case "step.started":
      return { ...newStep(event), ...againOf(step), ...beforeOf(step) };
    case "step.note":
      return { ...step, note: event.text, heardAt: event.at };
    case "step.output":
      return { ...step, ...withOutput(step, event) };
    case "step.finished": {
      const { seq: _, at: __, type: ___, node: ____, changes = [], always = false, ...rest } = event;
      return { ...step, ...rest, changes, always, ...stillChanged(step, rest.outcome) };
    }
  }
}

interface Changing {
  readonly outcome?: Outcome;
  readonly before?: Changed;
}

/** The change of a step's or an action's earlier attempt, for its next attempt. */
function beforeOf(one: Changing & Partial<Changed>): { readonly before?: Changed } {
  if (one.outcome !== "changed") return one.before ? { before: one.before } : {};
  return { before: { ...omitUndefined({ changes: one.changes, diff: one.diff }) } };
}

/** A step that an earlier attempt changed stays `changed`, even if a later attempt finds it in order or skips it. */
function stillChanged(one: Changing & Partial<Changed>, outcome: Outcome) {
  const { before } = beforeOf(one);
  return before && (outcome === "ok" || outcome === "skipped") ? ({ ...before, outcome: "changed" } as const) : {};
}

function againOf({ outcome, again }: StepModel | ActionModel): { readonly again?: true } {
  return outcome !== undefined || again ? { again: true } : {};
}

/** The actions of a stage after one more event. */
export function changeAction(actions: readonly ActionModel[], event: ActionEvent): readonly ActionModel[] {
  const { stage, action, item } = event;
  const index = actions.findLastIndex((one) => one.action === action && one.item === item);
  const before = actions[index];
  const fresh: ActionModel = {
    stage,
    action,
    startedAt: event.at,
    tail: "",
    ...omitUndefined({ item }),
    ...(before && againOf(before)),
    ...(before && beforeOf(before)),
  };
  const found = event.type === "action.started" ? fresh : (before ?? fresh);
  const changed = changeOneAction(found, event);
  return index < 0 ? [...actions, changed] : actions.with(index, changed);
}

function changeOneAction(action: ActionModel, event: ActionEvent): ActionModel {
  if (event.type === "action.started") return action;
  if (event.type === "action.note") return { ...action, note: event.text, heardAt: event.at };
  if (event.type === "action.output") return { ...action, ...withOutput(action, event) };
  const { outcome, reason, problem, position, duration } = event;
  return {
    ...action,
    outcome,
    ...stillChanged(action, outcome),
    ...omitUndefined({ reason, problem, position, duration }),
  };
}
