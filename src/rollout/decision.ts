import type { Progress, Row, UpdatePhase } from "./records.ts";
import type { RolloutView } from "./view.ts";

/** What the owner writes next; empty when it has to wait for something. */
export interface Decision {
  readonly progress?: Progress;
  readonly rows: ReadonlyMap<string, Row>;
}

export const nothing: Decision = { rows: new Map() };

export function change(
  progress: Progress,
  { phase, reason }: { readonly phase: UpdatePhase; readonly reason?: string },
  { now }: RolloutView,
): Decision {
  const { waits: _, ...going } = progress;
  return {
    progress: { ...going, phase, since: now, ...(reason === undefined ? {} : { reason: clip(reason) }) },
    rows: new Map(),
  };
}

/** Tells why it does not go on; written only when that is another reason than before. */
export function wait(progress: Progress, reasons: readonly string[]): Decision {
  const waits = reasons.length > 0 ? clip(reasons.join("; ")) : undefined;
  if (progress.waits === waits) return nothing;
  const { waits: _, ...rest } = progress;
  return { progress: waits === undefined ? rest : { ...rest, waits }, rows: new Map() };
}

/** It may wait for hundreds of nodes, and what is told of them has its place in one register. */
const longest = 2_000;

function clip(text: string): string {
  return text.length > longest ? `${text.slice(0, longest - 2)} …` : text;
}
