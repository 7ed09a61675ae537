/** The progress of an update in one controller's view. */
interface Version {
  readonly generation: number;
  readonly owner: { readonly id: string; readonly epoch: number };
}

export interface StaleViewFilter {
  /** Whether no controller has shown a later state of the update. */
  readonly isCurrent: (view: Version) => boolean;
  /** Whether no controller has shown a later request of the node under the present owner. */
  readonly isCurrentNode: (node: { readonly id: string; readonly seq?: number | undefined }) => boolean;
}

/**
 * Leaves out the views of controllers that lag, or are cut off with a former owner. A drain by a stale view would take a node's work away for
 * good.
 */
export function staleViewFilter(): StaleViewFilter {
  let last: Version | undefined;
  let seqs = new Map<string, number>();
  return {
    isCurrent(view) {
      if (last && isBefore(view, last)) return false;
      if (last && (isBefore(last, view) || last.owner.id !== view.owner.id)) seqs = new Map();
      last = view;
      return true;
    },
    isCurrentNode({ id, seq = 0 }) {
      if (seq < (seqs.get(id) ?? 0)) return false;
      seqs.set(id, seq);
      return true;
    },
  };
}

function isBefore(one: Version, other: Version): boolean {
  return one.generation === other.generation ? one.owner.epoch < other.owner.epoch : one.generation < other.generation;
}
