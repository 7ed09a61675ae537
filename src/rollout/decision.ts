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
  return { progress: { ...going, phase, since: now, ...(reason === undefined ? {} : { reason }) }, rows: new Map() };
}

/** Tells why it does not go on; written only when that is another reason than before. */
export function wait(progress: Progress, reasons: readonly string[]): Decision {
  const waits = reasons.length > 0 ? reasons.join("; ") : undefined;
  if (progress.waits === waits) return nothing;
  const { waits: _, ...rest } = progress;
  return { progress: waits === undefined ? rest : { ...rest, waits }, rows: new Map() };
}
