// “Whole transactions” (docs/replication.md): pages of a pull are kept aside until the last one has come; then all count at once.
import { pagesOf } from "#crdt/delta.ts";
import { compareStamps, decodeStamp } from "#crdt/hlc.ts";
import { emptyPage, encodePage, MalformedPage, type Page } from "#crdt/page.ts";
import type { Register } from "#crdt/register.ts";
import { covers, dominates, raise, toWire, type VersionVector } from "#crdt/version-vector.ts";
import type { Core } from "./replica-core.ts";
import { checkFloor, checkOrigins } from "./origins.ts";
import { controllerOf } from "./registered-controllers.ts";
import type { PeerMessage, PullEnd } from "./messages.ts";
import type { Stream } from "./peer.ts";
import type { JournalRecord } from "./replica-ports.ts";
import { deleteAgain, registersToRepair } from "./repair.ts";
import type { Writer } from "./writer.ts";

type ApplyFields = Omit<Extract<JournalRecord, { t: "apply" }>, "t" | "page">;
type PageMessage = Extract<PeerMessage, { t: "page" }>;

/**
 * A pull under way. Its pages take no effect until the last one has arrived, because only the last one carries a version
 * vector.
 */
interface Sync {
  readonly id: number;
  readonly isRepair: boolean;
  /** The version vector that the pull named. */
  readonly seen: VersionVector;
  /** Pages that arrived before their predecessors. */
  readonly early: Map<number, PageMessage>;
  readonly pages: Page[];
  readonly registers: Register[];
  /** The register with the highest stamp. */
  latest: Register | undefined;
  next: number;
  askedAt: number;
  cancel: () => void;
}

const pageBytes = 1024 * 1024;

/** Fetches the missing transactions from one peer. */
export class Puller {
  readonly #core: Core;
  readonly #stream: Stream;
  readonly #writer: Writer;
  readonly #onSynced: () => void;
  #sync: Sync | undefined;
  /** Pulls started so far. */
  #started = 0;
  #isAskedAgain = false;
  /** The (monotonic) time until which nothing is pulled from this peer: it has stamps that lie too far ahead. */
  #deferredUntil = 0;
  /** The latest of these stamps, ms: if this clock is corrected, the pull need not wait. */
  #deferredMs = 0;

  constructor(core: Core, stream: Stream, writer: Writer, onSynced: () => void) {
    this.#core = core;
    this.#stream = stream;
    this.#writer = writer;
    this.#onSynced = onSynced;
  }

  /** Starts a pull unless one is under way. `buckets`: a repair of these buckets of the digest. */
  pull(buckets?: readonly number[]): void {
    const { state, tuning, options } = this.#core;
    if (!this.#stream.isOpen || this.#core.fullExchange || !this.#core.isSource(this.#stream.peer)) return;
    if (this.#sync) {
      this.#isAskedAgain = true;
      return;
    }
    if (options.clock.mono() < this.#deferredUntil && this.#core.guard.tooFarAhead(this.#deferredMs) > 0) return;
    const sync: Sync = {
      id: ++this.#started,
      isRepair: buckets !== undefined,
      seen: new Map(state.map.vector),
      early: new Map(),
      pages: [],
      registers: [],
      latest: undefined,
      next: 0,
      askedAt: options.clock.mono(),
      cancel: () => undefined,
    };
    this.#sync = sync;
    this.#stream.send({
      t: "pull",
      sync: sync.id,
      vv: toWire(state.map.vector),
      ...this.#core.underway(),
      window: tuning.window,
      ...(buckets ? { buckets } : {}),
    });
    this.#await(sync);
  }

  #await(sync: Sync): void {
    sync.cancel();
    sync.cancel = this.#core.after(this.#stream.peer.rtt.deadline(pageBytes), () => {
      this.#stream.peer.rtt.timedOut();
      this.abandon();
    });
  }

  abandon(): void {
    this.#sync?.cancel();
    this.#sync = undefined;
    this.#isAskedAgain = false;
    this.#core.endFullExchange(this);
  }

  page(message: PageMessage, bytes: number): void {
    const sync = this.#sync;
    if (!sync || message.sync !== sync.id || message.index < sync.next) return;
    if (message.end && (message.end.full !== undefined) !== message.full)
      throw new MalformedPage("a full exchange that is none");
    this.#stream.peer.rtt.transferred(bytes, this.#core.options.clock.mono() - sync.askedAt);
    sync.early.set(message.index, message);
    for (let page = sync.early.get(sync.next); page; page = sync.early.get(sync.next)) {
      sync.early.delete(sync.next++);
      const registers = this.#core.state.reader.read(page.page);
      for (const twice of this.#core.state.map.findEquivocations(registers)) this.#core.reportEquivocation(twice);
      for (const register of registers) {
        sync.registers.push(register);
        if (!sync.latest || compareStamps(register, sync.latest) > 0) sync.latest = register;
      }
      const { latest } = sync;
      const ahead = latest ? this.#core.guard.tooFarAhead(latest.ms) : 0;
      if (latest && ahead > this.#core.tuning.fenceAt) return this.defer(latest.o, ahead);
      sync.pages.push(page.page);
      if (page.end) return this.#finish(sync, page.end);
      this.#stream.send({ t: "credit", sync: sync.id });
    }
    this.#await(sync);
  }

  #finish(sync: Sync, end: PullEnd): void {
    sync.cancel();
    const { state, guard, tuning } = this.#core;
    const { peer } = this.#stream;
    const { ms } = decodeStamp(end.hlc);
    const { o, ms: latest } = sync.latest ?? { o: peer.id, ms: 0 };
    const ahead = guard.tooFarAhead(Math.max(ms, latest));
    const origin = latest < ms ? peer.id : o;
    if (ahead > tuning.fenceAt) return this.defer(origin, ahead);
    if (ahead > 0) {
      // Wait, then apply these pages. A new pull could be deferred for ever, since newer writes lie as far ahead.
      this.#raiseAhead(origin, ahead);
      sync.cancel = this.#core.after(ahead, () => this.#finishLate(sync, end));
      return;
    }
    peer.confirmed(end.upto, end.soon);
    const upto = new Map(end.upto);
    if (sync.registers.some(({ o, s }) => !covers(upto, o, s) || controllerOf(o) === ""))
      throw new MalformedPage("transactions that it does not claim to have");
    if (end.full) checkFloor(new Map(end.full.floor), upto, sync.seen);
    checkOrigins(state, end.upto, sync.registers);
    this.#core.generation.check(peer.id, { vv: end.upto, ...end });
    this.#take(sync, end, upto);
  }

  #finishLate(sync: Sync, end: PullEnd): void {
    try {
      this.#finish(sync, end);
    } catch (error) {
      if (!(error instanceof MalformedPage)) throw error;
      this.#stream.malformed(error.message);
    }
  }

  #take(sync: Sync, end: PullEnd, upto: VersionVector): void {
    const { state } = this.#core;
    // The peer was restored to before a deletion that is forgotten here: it needs a full exchange from this controller first.
    if (!dominates(upto, state.floor)) return this.abandon();
    if (end.full) {
      // Begun only after the last page: a peer that never ends its exchange must not keep this controller from writing.
      if (!this.#core.beginFullExchange(this)) return this.abandon();
      return this.#whenQuiet(sync, () => this.#takeAll(sync, end));
    }
    const { map } = state;
    if (sync.isRepair) return this.#repair(sync, end);
    if (dominates(map.vector, upto)) return this.#done(sync);
    raise(this.#core.accepted, upto);
    const news = end.upto.filter(([origin, seq]) => !covers(map.vector, origin, seq));
    const apply = { upto: news, hlc: end.hlc };
    this.#core.commit(
      recordsOf(sync.pages, apply),
      sync.registers,
      () => this.#done(sync),
      () => this.abandon(),
    );
  }

  /**
   * Merges the differing registers that are covered already. The peer may have newer registers by now, also in other buckets, so neither
   * these nor the peer's version vector are merged.
   */
  #repair(sync: Sync, { hlc }: PullEnd): void {
    const taken = registersToRepair(this.#core, sync.registers);
    deleteAgain(this.#core, this.#writer, sync.registers);
    this.#core.commit(
      recordsOf(pagesOf(taken).map(encodePage), { upto: [], hlc, repair: true }),
      taken,
      () => this.#done(sync),
      () => this.abandon(),
    );
  }

  /** Waits until no own write is being journaled, since a full exchange changes the whole state. */
  #whenQuiet(sync: Sync, run: () => void): void {
    if (this.#core.inFlight === 0) return run();
    sync.cancel = this.#core.after(20, () => this.#whenQuiet(sync, run));
  }

  #takeAll(sync: Sync, end: PullEnd): void {
    const { full } = end;
    if (!full) return;
    const records = recordsOf(sync.pages, { upto: end.upto, hlc: end.hlc, full });
    const upto = new Map(end.upto);
    this.#core.commit(
      records,
      sync.registers,
      () => this.#rewrite(upto, sync),
      () => this.abandon(),
    );
  }

  /**
   * Registers here that the peer has not seen may be older than a deletion that it forgot, if their stamps are below its floor. They are
   * written anew with later stamps: better a value too many than an acknowledged one lost.
   */
  #rewrite(upto: ReadonlyMap<string, number>, sync: Sync): void {
    const { state } = this.#core;
    const old = [...state.map.all()].filter(
      (register) => !covers(upto, register.o, register.s) && compareStamps(register, state.floorStamp) <= 0,
    );
    if (old.length === 0) return this.#done(sync);
    this.#writer.rewrite(
      old,
      () => this.#done(sync),
      () => this.abandon(),
    );
  }

  #done(sync: Sync): void {
    for (const origin of this.#stream.peer.deferred) this.undefer(origin);
    this.#core.endFullExchange(this);
    if (this.#sync !== sync) return;
    this.#sync = undefined;
    if (!sync.isRepair) this.#onSynced();
    const isMore = this.#isAskedAgain;
    this.#isAskedAgain = false;
    if (isMore && !dominates(this.#core.accepted, this.#stream.peer.acked ?? new Map())) this.pull();
  }

  /**
   * Defers pulls from a peer with stamps too far ahead of this clock. Its pages lack the registers that these writes superseded, so
   * a version vector without these writes would claim missing registers. Pushes and other peers continue.
   */
  defer(origin: string, ahead: number): void {
    this.abandon();
    const { tuning, options } = this.#core;
    const wait = Math.min(Math.max(ahead, 500), tuning.pullEvery);
    this.#raiseAhead(origin, ahead);
    this.#deferredUntil = options.clock.mono() + wait;
    this.#deferredMs = options.clock.wall() + ahead + tuning.maxReceiveAhead;
    this.#core.after(wait, () => this.pull());
  }

  #raiseAhead(origin: string, ahead: number): void {
    const { alarms, guard, tuning } = this.#core;
    const ms = ahead + tuning.maxReceiveAhead;
    this.#stream.peer.deferred.add(origin);
    guard.deferred.set(origin, ms);
    alarms.raise("CLOCK_SKEW", origin, `${origin} stamped ${ms} ms ahead of this clock; its writes wait`);
  }

  undefer(origin: string): void {
    this.#stream.peer.deferred.delete(origin);
    this.#core.guard.deferred.delete(origin);
    this.#core.alarms.clear("CLOCK_SKEW", origin);
  }
}

/** The journal records of a pull: its pages as `part`s, and the `apply` that makes them effective. */
function recordsOf(pages: readonly Page[], apply: ApplyFields): readonly JournalRecord[] {
  const parts = pages.slice(0, -1).map((page): JournalRecord => ({ t: "part", page }));
  return [...parts, { t: "apply", page: pages.at(-1) ?? emptyPage, ...apply }];
}
