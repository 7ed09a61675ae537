import type { Fence, Report } from "#rollout/records.ts";

/** The order that the agent tells its controller it knows, so that it is not given that one again. */
export interface KnownOrder {
  /** Called before each exchange with the updater's present report. Undefined: the agent knows no order, and the controller gives it anew. */
  readonly asks: (report: Report | undefined) => Fence | undefined;
  readonly brings: (fence: Fence) => void;
  /** The order did not reach the updater. */
  readonly lost: () => void;
}

export function knowOrder(): KnownOrder {
  let known: Fence | undefined;
  /** The `epoch` of the updater's report that was read last. */
  let word: number | undefined;
  return {
    asks(report) {
      // A busy updater refuses an order without an answer. Each new report may mean that the updater is free again.
      // The agent then names only the order in that report, so that the controller gives a refused order again.
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
