import type { Controllers } from "../cluster/controllers.ts";

/** An owner that reaches no majority for so long starts no node any more. */
const leaseMs = 30_000;

/** Whether a majority of the registered controllers, this one among them, was reached not long ago. */
export interface Majority {
  readonly isHeld: () => boolean;
}

export function watchMajority({ list }: Pick<Controllers, "list">, monotonic: () => number): Majority {
  let heldAt = -Infinity;
  return {
    isHeld() {
      const all = list();
      const reached = all.filter(({ state }) => state === "self" || state === "connected" || state === "suspect");
      if (2 * reached.length > all.length) heldAt = monotonic();
      return monotonic() - heldAt <= leaseMs;
    },
  };
}
