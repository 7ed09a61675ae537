import type { RunEvent } from "#engine/events/event.ts";
import { reduceEvents } from "#engine/events/reduce.ts";
import { digestRun, type DigestFacts, type RunDigest } from "#tui/digest.ts";

/** A run in short after these events; the facts of its record follow from them, unless given. */
export function digestOf(events: readonly RunEvent[], facts: Partial<DigestFacts> = {}): RunDigest {
  const model = reduceEvents(events);
  const { outcome: state = "died", command, startedAt: created } = model;
  const logOf = (node = "bastion"): string => `.kcore/runs/ID/nodes/${node}.log`;
  return digestRun(model, { id: "20261121-061500-a1b2", state, who: "ops@bastion", command, created, logOf, ...facts });
}
