import type { Controllers } from "../cluster/controllers.ts";

/** An owner that reaches no majority for so long starts no node any more. */
const leaseMs = 30_000;

/** Whether a majority of the registered controllers, this one among them, was reached not long ago. */
export interface Majority {
  readonly isHeld: () => boolean;
  /** How many that is, of how many. */
  readonly needed: () => { readonly needed: number; readonly of: number };
}

export function watchMajority({ list }: Pick<Controllers, "list">, monotonic: () => number): Majority {
  let heldAt = -Infinity;
  const needed = (of: number): number => Math.floor(of / 2) + 1;
  return {
    isHeld() {
      const all = list();
      const reached = all.filter(({ state }) => state === "self" || state === "connected" || state === "suspect");
      if (reached.length >= needed(all.length)) heldAt = monotonic();
      return monotonic() - heldAt <= leaseMs;
    },
    needed() {
      const of = list().length;
      return { needed: needed(of), of };
    },
  };
}
