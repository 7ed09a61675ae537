import type { HookAnswer, Row } from "./records.ts";
import type { UpdateSpec } from "./spec.ts";
import { hookKey, type RolloutView } from "./view.ts";

type Hook = { readonly state?: string | undefined; readonly command?: string | undefined };

/** Whether the bastion has to do something: it names a state or a command. */
export function isHook(hook: Hook | undefined): boolean {
  return hook?.state !== undefined || hook?.command !== undefined;
}

/** What the bastion does for a node in this phase, one after the other: `drain`, `gate NAME`, `undrain`. */
function hooksOf({ drain, healthGates }: UpdateSpec, { phase, drained }: Row): readonly string[] {
  const undrain = drained === true && isHook(drain.after) ? ["undrain"] : [];
  switch (phase) {
    case "draining":
      return isHook(drain) ? ["drain"] : [];
    case "verifying":
      return [...healthGates.filter(isHook).map(({ name }) => `gate ${name}`), ...undrain];
    case "cancelled":
    case "rolled_back":
      return undrain;
    default:
      return [];
  }
}

/** How far the hooks of a row are: the one that is to be done next, and what came of one that failed. */
export function lookAtHooks(
  { spec, answers }: Pick<RolloutView, "spec" | "answers">,
  id: string,
  row: Row,
): { readonly next?: string; readonly failed?: { readonly hook: string; readonly message: string } } {
  for (const hook of hooksOf(spec, row)) {
    const answer = answers.get(hookKey(id, hook));
    if (!answer || !isFor(answer, row)) return { next: hook };
    if (!answer.ok) return { failed: { hook, message: answer.message ?? "it failed" } };
  }
  return {};
}

function isFor({ generation, seq }: HookAnswer, row: Row): boolean {
  return generation === row.generation && seq === row.seq;
}
