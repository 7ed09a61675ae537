import { covers, type VersionVector } from "#crdt/version-vector.ts";
import type { Core } from "./core.ts";
import type { JournalRecord } from "./replica-ports.ts";

/**
 * The last record of a store that was put back by `kcore controller restore` or `repair`: nothing is written again under the origin
 * that it had, and it serves when it has caught up with another controller; if it is `alone`, at once. `word` gives 8 hexadecimal
 * digits, others each time.
 */
export function newIncarnation(id: string, word: () => string, alone = false): JournalRecord {
  const states = alone ? { ready: true, behind: false } : { behind: true };
  return { t: "meta", storeId: word() + word(), origin: originOf(id, word()), alone, ...states };
}

/** ms; so often at most a new origin is taken because one peer claims more of the present one. */
const renewEvery = 60_000;
/** So many are taken because of one peer while this process runs: each stands in all version vectors for ever. */
const mostRenewed = 3;

export function originOf(id: string, word: string): string {
  return `${id}#${word}`;
}

/**
 * Under which origin this controller writes. A dot must never be used twice, and a store may have been put back to an earlier
 * state without anybody saying so (a snapshot of a VM, a copied folder). So an origin that was found on the disk is used only
 * when every member confirmed that it knows no later transaction of it; else a new one is taken.
 */
export class Incarnation {
  readonly #core: Core;
  /** Seqs up to here were given out. */
  #issued: number;
  #isFresh = false;
  /** When new origins were taken because of a peer. */
  readonly #renewedAt = new Map<string, readonly number[]>();
  readonly #confirmedBy = new Set<string>();
  /** The seq of our own that a peer has and we have lost. */
  #lost: number | undefined;
  #waiting: (() => void)[] = [];

  constructor(core: Core) {
    this.#core = core;
    this.#issued = core.state.map.vector.get(core.state.origin) ?? 0;
  }

  get origin(): string {
    return this.#core.state.origin;
  }

  nextSeq(): number {
    this.#settle(this.origin);
    return ++this.#issued;
  }

  #settle(origin: string): void {
    this.#core.settledOrigin = origin;
    this.#core.ownOrigins.add(origin);
  }

  /** Takes a new origin. */
  renew(): void {
    const origin = originOf(this.#core.options.id, this.#core.randomName().slice(0, 8));
    this.#core.state.apply({ t: "meta", origin });
    this.#issued = 0;
    this.#isFresh = true;
    this.#settle(origin);
    this.#lost = undefined;
    // Should this fail, nothing was written under the origin, or the writes will tell of it.
    this.#core.commit([{ t: "meta", origin }], [], ignore, ignore);
    this.#flush();
  }

  /** A peer told what it has. */
  heard(peer: string, vector: VersionVector): void {
    const claimed = vector.get(this.origin) ?? 0;
    if (claimed <= this.#issued) {
      this.#confirmedBy.add(peer);
      this.#flush();
    } else if (this.#core.settledOrigin === this.origin) this.#disputed(peer, claimed);
    else if (this.#lost === undefined) {
      this.#core.options.log?.("warn", "this store was put back to an earlier state; fetching what it lost", {
        claimed,
      });
      this.#lost = claimed;
      this.#core.after(this.#core.tuning.recoverWithin, () => {
        if (this.#lost !== undefined) this.renew();
      });
    } else this.#lost = Math.max(this.#lost, claimed);
  }

  /**
   * One that is no member here claims more of our origin than was written: maybe this store was put back to before it was
   * registered. A new origin harms nobody, so its word is good enough for one, once.
   */
  contradicted(vector: VersionVector): void {
    if (!this.#isFresh && !this.isRecovering && (vector.get(this.origin) ?? 0) > this.#issued) this.renew();
  }

  /**
   * A peer claims more than was written since this process began to write: there is a clone of this controller, or the peer was lied
   * to, or lies itself. What is written goes on under a new origin, where nobody covers it; whoever claims again and again gets no more of them.
   */
  #disputed(peer: string, claimed: number): void {
    const { alarms, options } = this.#core;
    const text = `${peer} claims transaction ${claimed} of ${this.origin}, which wrote ${this.#issued}: there is a clone of this controller, or ${peer} was lied to, or lies`;
    alarms.raise("EQUIVOCATION", peer, text);
    const now = options.clock.mono();
    // One that was lied to is as good as expelled until this origin is a former one, so each has a claim of its own.
    const times = this.#renewedAt.get(peer) ?? [];
    if (times.length >= mostRenewed || now - (times.at(-1) ?? -Infinity) < renewEvery) return;
    this.#renewedAt.set(peer, [...times, now]);
    this.renew();
  }

  /** The state moved on: maybe all that was lost is back. */
  progressed(): void {
    if (this.#lost !== undefined && covers(this.#core.state.map.vector, this.origin, this.#lost)) this.renew();
  }

  get isRecovering(): boolean {
    return this.#lost !== undefined;
  }

  /** Calls `run` as soon as the origin may be written under. */
  whenUsable(run: () => void): void {
    if (this.#isUsable()) return run();
    this.#waiting.push(run);
    if (this.#waiting.length > 1) return;
    this.#core.after(this.#core.tuning.confirmWithin, () => {
      if (this.#waiting.length > 0 && !this.isRecovering) this.renew();
    });
  }

  #isUsable(): boolean {
    if (this.isRecovering) return false;
    return this.#isFresh || this.#core.others.every((id) => this.#confirmedBy.has(id));
  }

  #flush(): void {
    if (!this.#isUsable()) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const run of waiting) run();
  }
}

function ignore(): void {}
