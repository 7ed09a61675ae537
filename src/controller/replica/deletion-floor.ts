// “A deletion stays deleted” (docs/replication.md): a peer that has not seen every forgotten deletion needs a full exchange.
import { compareStamps, zero, type Stamp } from "#crdt/hlc.ts";
import { raise, type VersionVector } from "#crdt/version-vector.ts";

/** The deletions that this controller has forgotten: for each origin the highest seq, and of all the highest stamp. */
export class DeletionFloor {
  readonly #vector = new Map<string, number>();
  #stamp: Stamp = zero;

  get vector(): VersionVector {
    return this.#vector;
  }

  get stamp(): Stamp {
    return this.#stamp;
  }

  /** Adds the deletions up to these seqs and this stamp. */
  raise(vector: Iterable<readonly [origin: string, seq: number]>, stamp: Stamp): void {
    raise(this.#vector, vector);
    if (compareStamps(stamp, this.#stamp) > 0) this.#stamp = { ms: stamp.ms, c: stamp.c };
  }
}
