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

/** A transaction has its bounds (controller/replica/writer.ts), and each row may tell at length why it failed. */
const most = { rows: 400, bytes: 384 * 1024 } as const;

/**
 * As much of a decision as can be written at once. The next one has the others: rows that it moves are moved then, and a node that a
 * rollout begins with and that has no row yet is asked what it does, as behind a takeover (adopt.ts).
 */
export function cut({ rows, ...decision }: Decision): Decision {
  const kept = new Map<string, Row>();
  let bytes = 0;
  for (const [id, row] of rows) {
    bytes += Buffer.byteLength(JSON.stringify(row));
    if (kept.size === most.rows || bytes > most.bytes) break;
    kept.set(id, row);
  }
  return { ...decision, rows: kept };
}

/** It may wait for hundreds of nodes, and what is told of them has its place in one register. */
const longest = 2_000;

function clip(text: string): string {
  return text.length > longest ? `${text.slice(0, longest - 2)} …` : text;
}
