import { KcoreError, type Problem } from "#errors/problem.ts";
import type { LateScope, Registered, RenderedStep, StepDraft } from "#engine/states/planned-step.ts";
import type { SessionEffect, StepResults, QueuedStep, ReadyStep } from "./session-events.ts";

/** What the steps of a node rest on. */
export interface StepInputs {
  /** Every step of the node's work so far, by key. */
  readonly drafts: ReadonlyMap<string, StepDraft>;
  /** By register name. */
  readonly registered: ReadonlyMap<string, Registered | undefined>;
  readonly facts: Readonly<Record<string, unknown>> | undefined;
}

/** What can go to the node now, and what is left for later. */
export interface NextBatch {
  readonly steps: readonly ReadyStep[];
  readonly rest: readonly QueuedStep[];
  readonly registered: ReadonlyMap<string, Registered | undefined>;
  /** The next step rests on facts that nobody gathered. */
  readonly facts: boolean;
  /** Steps that ended without the node. */
  readonly ends: readonly SessionEffect[];
  /** The step after these cannot be rendered now that its late values are known. */
  readonly unrenderable: Problem | undefined;
}

const nothing: Registered = { changed: false, rc: 0, stdout: "", facts: {} };

/**
 * Takes from the queue what can be rendered now: up to the first step that rests on what is not known yet.
 * @param isAfterFailure only steps that answer a failure are sent
 * @throws what a draft throws beside KcoreError
 */
export function take(queue: readonly QueuedStep[], known: StepInputs, heard: StepResults, isAfterFailure: boolean): NextBatch {
  const registered = new Map(known.registered);
  const steps: ReadyStep[] = [];
  const ends: SessionEffect[] = [];
  const inSegment = new Set<string>();
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
    const before = heard.outcomeOf(key);
    if (before !== undefined && before !== "failed" && before !== "interrupted") {
      if (register !== undefined) registered.set(register, heard.registered(key));
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
    if (isAfterFailure && plan.onFailure.length === 0) continue;
    steps.push({ key, plan, owes: watchersOf(draft, known) });
    if (register !== undefined) inSegment.add(register);
    if (plan.step.ends === "boot") return until(at + 1);
  }
  return until(queue.length);
}

/** What cannot be rendered now that its late values are known has failed, like a step that was tried. */
function render(
  draft: StepDraft,
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

/** Keys of all steps, of this segment or a later one, that watch this one. */
function watchersOf({ id }: StepDraft, { drafts }: StepInputs): string[] {
  return [...drafts].filter(([, { watches }]) => watches.includes(id)).map(([key]) => key);
}
