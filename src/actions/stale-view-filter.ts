/** The generation and the owner of an update in one controller's view. */
interface ViewVersion {
  readonly generation: number;
  readonly owner: { readonly id: string; readonly epoch: number };
}

/**
 * Leaves out the views of controllers that lag, or are cut off with a former owner. A drain by a stale view would take a node's work away for
 * good.
 */
export function staleViewFilter() {
  let last: ViewVersion | undefined;
  let seqs = new Map<string, number>();
  return {
    /** Takes a view; false if a controller has shown a later state of the update. */
    accept: (view: ViewVersion): boolean => {
      if (last && isBefore(view, last)) return false;
      if (last && (isBefore(last, view) || last.owner.id !== view.owner.id)) seqs = new Map();
      last = view;
      return true;
    },
    /** Takes a node of the last accepted view; false if a controller has shown a later request for the node under the present owner. */
    acceptNode: ({ id, seq = 0 }: { readonly id: string; readonly seq?: number | undefined }): boolean => {
      if (seq < (seqs.get(id) ?? 0)) return false;
      seqs.set(id, seq);
      return true;
    },
  };
}

function isBefore(one: ViewVersion, other: ViewVersion): boolean {
  return one.generation === other.generation ? one.owner.epoch < other.owner.epoch : one.generation < other.generation;
}
