import type { Remembered } from "#rollout/node-fence.ts";
import type { OrderStep } from "#rollout/order.ts";
import type { Failure, Fence, Report } from "#rollout/records.ts";

export interface SimOrder {
  readonly fence: Fence;
  readonly step: OrderStep;
  /** What the manifest that comes with it names. */
  readonly target: string;
}

export type State = Report["state"];

/** What a machine keeps through everything. */
export interface Memory {
  readonly remembered: Omit<Remembered, "isBusy">;
  readonly state: State;
  readonly target: string;
  readonly previous?: string;
  /** An order to go back came while it was being activated. */
  readonly isBackOwed?: boolean;
  readonly failure?: Failure;
  readonly count: number;
  /** What it was at with other updates, by name. */
  readonly others: ReadonlyMap<string, Memory>;
}

export const downStates: ReadonlySet<State> = new Set(["activating", "rebooting", "rolling_back"]);

/** What it was at with an order's manifest, also when it had another update's meanwhile. */
export function memoryFor(memory: Memory | undefined, order: SimOrder): Omit<Memory, "remembered"> {
  const { target, fence } = order;
  if (!memory) return { state: "fenced", target, count: 0, others: new Map() };
  const { count } = memory;
  const before = memory.remembered.fence;
  const isSameName = before.name === fence.name;
  const others = isSameName ? memory.others : new Map([...memory.others, [before.name, memory]]);
  const known = isSameName ? memory : others.get(fence.name);
  if (known?.remembered.fence.generation === fence.generation) return { ...known, count, others };
  // Whichever generation of the update brought it where it is.
  const { previous } = known ?? {};
  return { state: "fenced", target, count, others, ...(previous === undefined ? {} : { previous }) };
}
