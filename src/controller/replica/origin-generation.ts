// “Numbers are used once” (docs/replication.md): an origin of which a peer knows more than this controller is given up.
import { MalformedPage } from "#crdt/page.ts";
import { covers, raise } from "#crdt/version-vector.ts";
import { inBackground } from "./commit-queue.ts";
import type { ReplicaContext } from "./replica-context.ts";
import type { MessageOf } from "./messages.ts";
import type { JournalRecord } from "./replica-ports.ts";

type HeldTransactions = Pick<MessageOf<"have">, "vv" | "soon">;

/**
 * The last record of a store that `kcore controller restore`, `repair` or `found` wrote. With it the controller never writes again under its
 * former origin, and serves once it has caught up with another controller; if `alone`, at once. `word` returns 8 random hexadecimal digits.
 */
export function newOriginGeneration(id: string, word: () => string, alone = false): JournalRecord {
  const states = alone ? { ready: true, behind: false } : { behind: true };
  return { t: "meta", storeId: word() + word(), origin: originOf(id, word()), alone, ...states };
}

/** The most new origins that peers can make a running process take: each origin stays in all version vectors for ever. */
const mostDisputes = 3;

export function originOf(id: string, word: string): string {
  return `${id}#${word}`;
}

/**
 * The origin under which this controller writes. A dot must never be used twice, and the folder may have been restored to an
 * earlier state (VM snapshot, copy). So the controller uses the origin on its disk only after every other member confirmed
 * that it knows no later transaction of that origin. Otherwise the controller takes a new origin.
 */
export class OriginGeneration {
  readonly #core: ReplicaContext;
  #origin: string;
  /** The last seq that was assigned. */
  #issued: number;
  /** Whether this process made the present origin. */
  #isFresh = false;
  /** The origins under which this process wrote: it knows all of their transactions. */
  readonly #own = new Set<string>();
  #disputes = 0;
  readonly #confirmedBy = new Set<string>();
  /** The highest seq of this origin that a peer holds and this store lost. */
  #lostSeq: number | undefined;
  /** Resolves for the first writes, which wait for the confirmation. */
  #waiting: PromiseWithResolvers<void> | undefined;

  constructor(core: ReplicaContext) {
    this.#core = core;
    this.#origin = core.state.origin;
    this.#issued = core.state.map.vector.get(this.#origin) ?? 0;
  }

  get origin(): string {
    return this.#origin;
  }

  /** Whether this process wrote under the origin. */
  hasWritten(origin: string): boolean {
    return this.#own.has(origin);
  }

  /** Assigns the next seq of the origin. */
  nextSeq(): number {
    this.#own.add(this.origin);
    return ++this.#issued;
  }

  /** Takes a new origin. */
  renew(): void {
    const origin = originOf(this.#core.options.id, this.#core.randomName().slice(0, 8));
    this.#origin = origin;
    this.#issued = 0;
    this.#isFresh = true;
    this.#own.add(origin);
    this.#lostSeq = undefined;
    // Not awaited: if the journal refuses this record, it refuses the writes under the new origin, too.
    inBackground(this.#core.commits.commit([{ t: "meta", origin }]));
    this.#endWaiting();
  }

  /** Evaluates the transactions that a peer holds or is journaling: they confirm the origin, or show lost transactions or a clone. */
  heard(peer: string, held: HeldTransactions): void {
    const claimed = this.#claimedBy(held);
    if (claimed <= this.#issued) {
      this.#confirmedBy.add(peer);
      this.#endWaiting();
    } else if (this.hasWritten(this.origin)) {
      const text = `${peer} claims transaction ${claimed} of ${this.origin}, which wrote ${this.#issued}: there is a clone of this controller`;
      this.#core.alarms.raise("EQUIVOCATION", peer, text);
      this.dispute();
    } else if (this.#lostSeq === undefined) {
      this.#core.options.log?.("warn", "this store was put back to an earlier state; fetching what it lost", {
        claimed,
      });
      this.#lostSeq = claimed;
      this.#core.after(this.#core.tuning.recoverWithin, () => {
        if (this.#lostSeq !== undefined) this.renew();
      });
    } else this.#lostSeq = Math.max(this.#lostSeq, claimed);
  }

  /** The highest seq of this origin that a peer holds or is journaling. */
  #claimedBy({ vv, soon = [] }: HeldTransactions): number {
    const vector = new Map(vv);
    raise(vector, soon);
    return vector.get(this.origin) ?? 0;
  }

  /** Called when another process wrote under the origin: this process continues under a new origin, which no peer covers. */
  dispute(): void {
    if (this.#disputes++ < mostDisputes) this.renew();
  }

  /**
   * Checks the end of a pull. The own version vector must never cover a seq of this origin that is assigned later: peers and this controller
   * would ignore that write. @throws MalformedPage
   */
  check(peer: string, held: HeldTransactions): void {
    const claimed = this.#claimedBy(held);
    if (!this.hasWritten(this.origin)) this.heard(peer, held);
    else if (claimed > this.#issued)
      throw new MalformedPage(`transaction ${claimed} of ${this.origin}, which this controller never wrote`);
  }

  /**
   * Called for the greeting of a controller that is no member here. If it claims more of this origin than was written, this store may
   * have been restored to before that controller's registration. A new origin harms no peer, so the claim suffices, once.
   */
  contradicted(held: HeldTransactions): void {
    if (!this.#isFresh && !this.isRecovering && this.#claimedBy(held) > this.#issued) this.renew();
  }

  /** Called when the state has advanced: once the lost transactions are back, this controller takes a new origin. */
  progressed(): void {
    if (this.#lostSeq !== undefined && covers(this.#core.state.map.vector, this.origin, this.#lostSeq)) this.renew();
  }

  get isRecovering(): boolean {
    return this.#lostSeq !== undefined;
  }

  /** Resolves once this controller may write under its origin, or under a new one. */
  async untilUsable(): Promise<void> {
    if (this.#isUsable()) return;
    if (!this.#waiting) {
      this.#waiting = Promise.withResolvers();
      this.#core.after(this.#core.tuning.confirmWithin, () => {
        if (this.#waiting && !this.isRecovering) this.renew();
      });
    }
    await this.#waiting.promise;
  }

  #isUsable(): boolean {
    if (this.isRecovering) return false;
    return this.#isFresh || this.#core.others.every((id) => this.#confirmedBy.has(id));
  }

  #endWaiting(): void {
    if (!this.#isUsable()) return;
    this.#waiting?.resolve();
    this.#waiting = undefined;
  }
}
