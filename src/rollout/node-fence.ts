import type { FencingToken } from "./records.ts";

/** The node's durable memory of orders. */
export interface OrderMemory {
  /** The last order that the node accepted. */
  readonly fence: FencingToken;
  /** Whether the node has unfinished work: then only the rollout of its last order may give it orders. */
  readonly isBusy: boolean;
  /** The last accepted order of each other update, so that a late order begins nothing again. */
  readonly past?: readonly FencingToken[];
}

/** Whether an order is accepted; if not, whether the node has accepted it or a later one of its owner before (`known`), or refuses it. */
export type OrderCheck =
  { readonly accept: true } | { readonly accept: false; readonly why: "known" | "refused"; readonly message: string };

/**
 * Whether a node accepts an order. This check alone keeps two owners from acting on one node. An older epoch, another
 * owner of the same epoch, and an older manifest are refused for ever; a busy node also refuses every manifest but the
 * one it works for (docs/adr/0515-cluster-updates.md).
 */
export function checkOrder(remembered: OrderMemory | undefined, order: FencingToken): OrderCheck {
  if (!remembered) return { accept: true };
  const { fence, isBusy, past = [] } = remembered;
  const { name, epoch, owner, generation, seq } = order;
  const last = fence.name === name ? fence : past.find((other) => other.name === name);
  if (last) {
    if (epoch < last.epoch)
      return refuse(`epoch ${epoch} is over: ${last.owner} owns the update since epoch ${last.epoch}`);
    if (epoch === last.epoch && owner !== last.owner)
      return refuse(`in epoch ${epoch} this node belongs to ${last.owner}, not to ${owner}`);
    if (generation < last.generation)
      return refuse(`generation ${generation} of “${name}” is over: generation ${last.generation} is here`);
    if (epoch === last.epoch && seq <= last.seq) return { accept: false, why: "known", message: "" };
  }
  const isSame = fence.name === name && fence.generation === generation;
  if (isBusy && !isSame)
    return refuse(`this node is busy with generation ${fence.generation} of “${fence.name}”, of ${fence.owner}`);
  return { accept: true };
}

/** The most updates that a node remembers: no order arrives after so many later updates. */
const mostRemembered = 200;

/** The node's memory of updates after it has accepted an order. */
export function rememberOrder(remembered: OrderMemory | undefined, fence: FencingToken): Omit<OrderMemory, "isBusy"> {
  const known = remembered ? [...(remembered.past ?? []), remembered.fence] : [];
  return { fence, past: known.filter(({ name }) => name !== fence.name).slice(-mostRemembered) };
}

function refuse(message: string): OrderCheck {
  return { accept: false, why: "refused", message };
}
