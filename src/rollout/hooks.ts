import type { HookAnswer, Row } from "./records.ts";
import { mayRunTarget } from "./starts.ts";
import { hookKey, type RolloutView } from "./view.ts";

type Hook = { readonly state?: string | undefined; readonly command?: string | undefined };

/** Whether the bastion has to do something: it names a state or a command. */
export function isHook(hook: Hook | undefined): boolean {
  return hook?.state !== undefined || hook?.command !== undefined;
}

/** What the bastion does for a node in this phase, one after the other: `drain`, `gate NAME`, `undrain`. */
function hooksOf(view: RolloutView, id: string, row: Row): readonly string[] {
  const { drain, healthGates } = view.spec;
  const undrain = row.drained === true && isHook(drain.after) ? ["undrain"] : [];
  switch (row.phase) {
    case "draining":
      return isHook(drain) ? ["drain"] : [];
    case "verifying":
      return [...healthGates.filter(isHook).map(({ name }) => `gate ${name}`), ...undrain];
    case "failed":
      // It went back by itself. To one that may run what failed, or may yet come to, no work returns.
      return mayRunTarget(view, id, row) ? [] : undrain;
    case "cancelled":
    case "rolled_back":
      return undrain;
    default:
      return [];
  }
}

/** How far the hooks of a row are: the one that is to be done next, and what came of one that failed. */
export function lookAtHooks(
  view: RolloutView,
  id: string,
  row: Row,
): { readonly next?: string; readonly failed?: { readonly hook: string; readonly message: string } } {
  for (const hook of hooksOf(view, id, row)) {
    const answer = view.answers.get(hookKey(id, hook));
    if (!answer || !isFor(answer, row)) return { next: hook };
    if (!answer.ok) return { failed: { hook, message: answer.message ?? "it failed" } };
  }
  return {};
}

function isFor({ generation, seq }: HookAnswer, row: Row): boolean {
  return generation === row.generation && seq === row.seq;
}

/** A node at rest whose work came back; undefined: there is nothing new. */
export function undrained(view: RolloutView, id: string, row: Row): Row | undefined {
  const isAnswered = hooksOf(view, id, row).length > 0 && Object.keys(lookAtHooks(view, id, row)).length === 0;
  return isAnswered ? withoutDrain(row) : undefined;
}

export function withoutDrain({ drained: _, ...row }: Row): Row {
  return row;
}
