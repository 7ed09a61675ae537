import type { Fence, Report } from "#rollout/records.ts";

/** The order that the agent tells its controller it knows, so that it is not given that one again. */
export interface KnownOrder {
  /** Before each question, with the node's present word. Undefined: its orders are asked for anew. */
  readonly asks: (report: Report | undefined) => Fence | undefined;
  readonly brings: (fence: Fence) => void;
  /** The order did not reach the updater. */
  readonly lost: () => void;
}

export function knowOrder(): KnownOrder {
  let known: Fence | undefined;
  /** The word of the node that was read last. */
  let word: number | undefined;
  return {
    asks(report) {
      // A busy updater refuses an order in silence; with each word it may be free, and an order that it has not taken is asked for again.
      if (report?.epoch !== word) known = report?.fence;
      word = report?.epoch;
      return known;
    },
    brings(fence) {
      known = fence;
    },
    lost() {
      known = undefined;
    },
  };
}
