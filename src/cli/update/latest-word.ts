/** What an update stands at, as one controller tells it. */
interface Word {
  readonly generation: number;
  readonly owner: { readonly id: string; readonly epoch: number };
}

export interface LatestWord {
  /** Whether nothing later was heard of the update. */
  readonly isLatest: (word: Word) => boolean;
  /** Whether nothing later was heard of a node, since the owner is the one that he is. */
  readonly isLatestOf: (node: { readonly id: string; readonly seq?: number | undefined }) => boolean;
}

/**
 * Tells what is asked for now from what was: a controller that is cut off tells what a former owner asks for, one that lags what was asked for a
 * while ago. To drain a node for that would take its work away for good, if it has it back.
 */
export function latestWord(): LatestWord {
  let last: Word | undefined;
  let seqs = new Map<string, number>();
  return {
    isLatest(word) {
      if (last && isBefore(word, last)) return false;
      if (last && (isBefore(last, word) || last.owner.id !== word.owner.id)) seqs = new Map();
      last = word;
      return true;
    },
    isLatestOf({ id, seq = 0 }) {
      if (seq < (seqs.get(id) ?? 0)) return false;
      seqs.set(id, seq);
      return true;
    },
  };
}

function isBefore(one: Word, other: Word): boolean {
  return one.generation === other.generation ? one.owner.epoch < other.owner.epoch : one.generation < other.generation;
}
