import type { ActionContext } from "#engine/orchestrate/action.ts";

const results = new Map<string, Promise<unknown>>();

/**
 * The result of `open`, which is called once for each run and each `what`: opening a CA's key takes 0.2 s of CPU on purpose (ADR 0111).
 * The next caller repeats a failed call.
 */
export function onceARun<Opened>(
  what: string,
  { runId }: Pick<ActionContext, "runId">,
  open: () => Promise<Opened>,
): Promise<Opened> {
  const key = `${runId} ${what}`;
  const present = results.get(key);
  if (present) return present as Promise<Opened>;
  const opening = open();
  results.set(key, opening);
  opening.catch(() => results.delete(key));
  return opening;
}
