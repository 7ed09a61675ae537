import type { Outcome } from "#engine/events/event.ts";

/** The label of a step's outcome, the same in every view; undefined: the step still runs. */
export function outcomeLabel(outcome: Outcome | undefined, always = false): string {
  switch (outcome) {
    case undefined:
      return "running";
    case "ok":
      return "in order";
    case "changed":
      return always ? "ran (always changes)" : "changed";
    case "would-change":
      return always ? "would run (always changes)" : "would change";
    case "failed":
    case "skipped":
    case "unknown":
    case "interrupted":
      return outcome;
  }
}
