import type { Fence } from "./records.ts";

/** What a node remembers, durably, of the rollout that it last heard of. */
export interface Remembered {
  readonly fence: Fence;
  /** Something is begun and not ended: no other rollout may have the node. */
  readonly isBusy: boolean;
}

export type Verdict =
  { readonly accept: true } | { readonly accept: false; readonly why: "known" | "refused"; readonly message: string };

/**
 * Whether a node takes an order. This alone keeps two owners from acting on one node, whatever controllers believe: an older epoch, or
 * another owner of the same epoch, is refused for ever, and one rollout at a time has the node (docs/adr/0515-cluster-updates.md).
 */
export function judgeOrder(remembered: Remembered | undefined, { name, epoch, owner, seq }: Fence): Verdict {
  if (!remembered) return { accept: true };
  const { fence, isBusy } = remembered;
  if (fence.name !== name)
    return isBusy ? refuse(`this node is busy with the update “${fence.name}” of ${fence.owner}`) : { accept: true };
  if (epoch < fence.epoch)
    return refuse(`epoch ${epoch} is over: ${fence.owner} owns the update since epoch ${fence.epoch}`);
  if (epoch === fence.epoch && owner !== fence.owner)
    return refuse(`in epoch ${epoch} this node belongs to ${fence.owner}, not to ${owner}`);
  if (epoch === fence.epoch && seq <= fence.seq) return { accept: false, why: "known", message: "" };
  return { accept: true };
}

function refuse(message: string): Verdict {
  return { accept: false, why: "refused", message };
}
