import { covers, type WireVector } from "#crdt/version-vector.ts";
import type { Core } from "./core.ts";
import { controllerOf } from "./registered-controllers.ts";

/** So often an origin's controller may say that it has less, before whoever claims more of it lies: what is on the way arrives by then. */
const enoughWords = 4;
/** ms; then the claim is believed: its controller says nothing, and may be cut off without our knowing yet. */
const longestWait = 15_000;

interface Entry {
  readonly origin: string;
  readonly seq: number;
  readonly owner: string;
}

/**
 * What a peer says that it has of other controllers' transactions. Whoever raises our version vector above what its owner wrote would make
 * us drop what the owner writes next (docs/replication.md). The owner knows; it is believed alone as long as it is connected.
 */
export class Claim {
  readonly #core: Core;
  readonly #by: string;
  readonly #since: number;
  readonly #entries: readonly Entry[];
  /** Owners that were asked, and how often they had spoken when they answered: what they said before may be older than the claim. */
  readonly #answered = new Map<string, number | undefined>();

  constructor(core: Core, by: string, upto: WireVector) {
    this.#core = core;
    this.#by = by;
    this.#since = core.options.clock.mono();
    this.#entries = upto.flatMap(([origin, seq]) => {
      const owner = controllerOf(origin);
      if (
        owner === by ||
        (owner === core.options.id && origin !== core.settledOrigin) ||
        covers(core.state.map.vector, origin, seq)
      )
        return [];
      return [{ origin, seq, owner }];
    });
  }

  /** Whether each owner that is connected said the same of itself. */
  isVouched(): boolean {
    return this.#core.options.clock.mono() - this.#since > longestWait || this.#open().length === 0;
  }

  /** Asks the owners that were not yet. */
  ask(): void {
    for (const { owner } of this.#open()) {
      const peer = this.#core.peers.get(owner);
      if (this.#answered.has(owner) || !peer?.stream) continue;
      this.#answered.set(owner, undefined);
      peer.stream.probe((isAlive) => {
        if (isAlive) this.#answered.set(owner, peer.words);
        else this.#answered.delete(owner);
      });
    }
  }

  /** What is wrong with it, once that is certain. */
  lie(): string | undefined {
    const { peers, accepted, settledOrigin } = this.#core;
    const own = this.#entries.find(({ origin, seq }) => origin === settledOrigin && !covers(accepted, origin, seq));
    if (own) return `${this.#by} claims transaction ${own.seq} of ${own.origin}, which this controller never wrote`;
    const entry = this.#open().find(({ owner }) => {
      const since = this.#answered.get(owner);
      return since !== undefined && (peers.get(owner)?.words ?? 0) - since >= enoughWords;
    });
    return entry && `${this.#by} claims transaction ${entry.seq} of ${entry.origin}, which ${entry.owner} never wrote`;
  }

  #open(): readonly Entry[] {
    return this.#entries.filter(({ origin, seq, owner }) => {
      if (origin === this.#core.settledOrigin) return !covers(this.#core.accepted, origin, seq);
      const peer = this.#core.peers.get(owner);
      if (!peer?.stream?.isOpen || covers(peer.acked ?? new Map(), origin, seq)) return false;
      // Of a former incarnation anybody may say what he likes: nothing will be written under it. The owner may have been put back, and not
      // know it; and what a liar made up of it, others hand on in good faith. Which is the present one, its answer tells.
      return origin === peer.origin || this.#answered.get(owner) === undefined;
    });
  }
}
