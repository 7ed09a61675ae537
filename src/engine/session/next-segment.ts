import { KcoreError, type Problem } from "#errors/problem.ts";
import type { LateScope, Registered, RenderedStep, UnresolvedStep } from "#engine/states/planned-step.ts";
import { stepKey } from "#engine/program/compile-step.ts";
import type { QueuedStep, ReadyStep, SessionEffect, StepResults } from "./session-events.ts";

/** The values from which a node's steps are rendered. */
export interface StepInputs {
  /** Every step of the node's work so far, by key. */
  readonly drafts: ReadonlyMap<string, UnresolvedStep>;
  /** By register name. */
  readonly registered: ReadonlyMap<string, Registered | undefined>;
  readonly facts: Readonly<Record<string, unknown>> | undefined;
}

/** The steps that can be sent to the node now, and the steps that must wait. */
interface NextBatch {
  readonly steps: readonly ReadyStep[];
  readonly rest: readonly QueuedStep[];
  readonly registered: ReadonlyMap<string, Registered | undefined>;
  /** The next step needs facts, which are to be gathered. */
  readonly facts: boolean;
  /** Effects of steps that ended without the node. */
  readonly ends: readonly SessionEffect[];
  /** Why the step after these cannot be rendered, although its values are known. */
  readonly unrenderable: Problem | undefined;
}

const nothing: Registered = { changed: false, rc: 0, stdout: "", facts: {} };

/**
 * The steps from the head of the queue that can be rendered now. They end before a step that needs an unknown value or cannot be rendered,
 * and after a step that reboots the node.
 * @param isAfterFailure only steps that react to a failure are sent, and checks
 * @throws errors of rendering a draft, except KcoreError, which fails the step
 */
export function nextBatch(
  queue: readonly QueuedStep[],
  known: StepInputs,
  results: StepResults,
  isAfterFailure: boolean,
): NextBatch {
  const registered = new Map(known.registered);
  const steps: ReadyStep[] = [];
  const ends: SessionEffect[] = [];
  const inSegment = new Set<string>();
  const watchers = watchersById(known);
  const until = (at: number, { facts = false, unrenderable }: { facts?: boolean; unrenderable?: Problem } = {}) => ({
    steps,
    rest: queue.slice(at),
    registered,
    facts,
    ends,
    unrenderable,
  });
  for (const [at, { key, draft }] of queue.entries()) {
    const { register } = draft;
    const before = results.outcomeOf(key);
    if (before !== undefined && before !== "failed" && before !== "interrupted") {
      if (register !== undefined) registered.set(register, results.registered(key));
      continue;
    }
    if (draft.needs.facts && !known.facts) return until(at, { facts: true });
    if (draft.needs.steps.some((name) => inSegment.has(name))) return until(at);
    const rendered = render(draft, { ...known, registered });
    if (rendered.kind === "problem") {
      ends.push({ do: "end-step", key, outcome: "failed", problem: rendered.problem });
      return until(at + 1, { unrenderable: rendered.problem });
    }
    if (rendered.kind !== "step") {
      const [outcome, reason] =
        rendered.kind === "skipped"
          ? (["skipped", rendered.reason] as const)
          : (["unknown", `after ${rendered.after}`] as const);
      ends.push({ do: "end-step", key, outcome, reason });
      if (register !== undefined) registered.set(register, rendered.kind === "skipped" ? nothing : undefined);
      continue;
    }
    const { plan } = rendered;
    if (isAfterFailure && plan.onFailure.length === 0 && draft.isCheck !== true) continue;
    steps.push({ key, plan, owes: [...(watchers.get(draft.id) ?? []), ...(draft.alsoOwes ?? []).map(stepKey)] });
    if (register !== undefined) inSegment.add(register);
    if (plan.step.ends === "boot") return until(at + 1);
  }
  return until(queue.length);
}

/** The rendered step, or the problem of rendering, which fails the step. */
function render(
  draft: UnresolvedStep,
  { registered, facts }: StepInputs,
): RenderedStep | { readonly kind: "problem"; readonly problem: Problem } {
  const value = (name: string): Registered | undefined => (registered.has(name) ? registered.get(name) : nothing);
  const late: LateScope = {
    steps: new Map(draft.needs.steps.map((name) => [name, value(name)])),
    ...(facts && { facts }),
  };
  try {
    return draft.render(late);
  } catch (error) {
    if (!(error instanceof KcoreError)) throw error;
    return { kind: "problem", problem: error.problems[0] as Problem };
  }
}

/** For each id of a step the keys of all steps, of this segment or a later one, that watch it. */
function watchersById({ drafts }: StepInputs): ReadonlyMap<string, string[]> {
  const watchers = new Map<string, string[]>();
  for (const [key, { watches }] of drafts)
    for (const id of new Set(watches)) {
      const known = watchers.get(id);
      if (known) known.push(key);
      else watchers.set(id, [key]);
    }
  return watchers;
}
