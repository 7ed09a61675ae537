// “Whole transactions” (docs/replication.md): pages of a pull are kept aside until the last one has come; then all count at once.
import { omitUndefined } from "#base/omit-undefined.ts";
import { pagesOf } from "#crdt/delta.ts";
import { compareStamps, decodeStamp } from "#crdt/hlc.ts";
import { emptyPage, encodePage, MalformedPage, type Page } from "#crdt/page.ts";
import type { Register } from "#crdt/register.ts";
import { covers, dominates, toWire, type VersionVector } from "#crdt/version-vector.ts";
import { inBackground } from "./commit-queue.ts";
import type { Core } from "./replica-core.ts";
import { checkOrigins } from "./origins.ts";
import { controllerOf } from "./registered-controllers.ts";
import type { MessageOf, PullEnd } from "./messages.ts";
import type { PeerStream } from "./peer.ts";
import type { JournalRecord } from "./replica-ports.ts";
import { deleteAgain, registersToRepair } from "./repair.ts";
import type { Writer } from "./writer.ts";

type ApplyFields = Omit<Extract<JournalRecord, { t: "apply" }>, "t" | "page">;

/**
 * A pull under way. Its pages take no effect until the last one has arrived, because only the last one carries a version
 * vector.
 */
interface Sync {
  readonly id: number;
  readonly isRepair: boolean;
  /** Pages that arrived before their predecessors. */
  readonly early: Map<number, MessageOf<"page">>;
  readonly pages: Page[];
  readonly registers: Register[];
  /** The register with the highest stamp. */
  latest: Register | undefined;
  next: number;
  cancel: () => void;
}

/** Fetches the missing transactions from one peer. */
export class Puller {
  readonly #core: Core;
  readonly #stream: PeerStream;
  readonly #writer: Writer;
  readonly #onSynced: () => void;
  #sync: Sync | undefined;
  /** The number of the last pull. */
  #lastSync = 0;
  #isAskedAgain = false;
  /**
   * The peer has a stamp that lies too far ahead: nothing is pulled until the (monotonic) time `until`, unless this clock is corrected and
   * may take the stamp.
   */
  #deferral: { readonly until: number; readonly stampMs: number } | undefined;

  constructor(core: Core, stream: PeerStream, writer: Writer, onSynced: () => void) {
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
    const { until = 0, stampMs = 0 } = this.#deferral ?? {};
    if (options.clock.mono() < until && this.#core.futureStamps.treatmentOf(stampMs) !== "take") return;
    const sync: Sync = {
      id: ++this.#lastSync,
      isRepair: buckets !== undefined,
      early: new Map(),
      pages: [],
      registers: [],
      latest: undefined,
      next: 0,
      cancel: () => undefined,
    };
    this.#sync = sync;
    this.#stream.send({
      t: "pull",
      sync: sync.id,
      vv: toWire(state.map.vector),
      ...this.#core.commits.underway(),
      window: tuning.window,
      ...(buckets ? { buckets } : {}),
    });
    this.#await(sync);
  }

  #await(sync: Sync): void {
    sync.cancel();
    sync.cancel = this.#core.after(this.#stream.peer.rtt.pageTimeout, () => {
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

  receivePage(message: MessageOf<"page">): void {
    const sync = this.#sync;
    if (!sync || message.sync !== sync.id || message.index < sync.next) return;
    sync.early.set(message.index, message);
    for (let page = sync.early.get(sync.next); page; page = sync.early.get(sync.next)) {
      sync.early.delete(sync.next++);
      const registers = this.#core.state.reader.read(page.page);
      for (const register of this.#core.state.map.findEquivocations(registers)) this.#core.reportEquivocation(register);
      for (const register of registers) {
        sync.registers.push(register);
        if (!sync.latest || compareStamps(register, sync.latest) > 0) sync.latest = register;
      }
      const { latest } = sync;
      if (latest && this.#core.futureStamps.treatmentOf(latest.ms) === "defer") return this.defer(latest.o, latest.ms);
      sync.pages.push(page.page);
      if (page.end) return this.#finish(sync, page.end);
      this.#stream.send({ t: "credit", sync: sync.id });
    }
    this.#await(sync);
  }

  #finish(sync: Sync, end: PullEnd): void {
    sync.cancel();
    const { state, futureStamps } = this.#core;
    const { peer } = this.#stream;
    const { ms } = decodeStamp(end.hlc);
    const { o, ms: latest } = sync.latest ?? { o: peer.id, ms: 0 };
    const [origin, stampMs] = latest < ms ? [peer.id, ms] : [o, latest];
    const treatment = futureStamps.treatmentOf(stampMs);
    if (treatment === "defer") return this.defer(origin, stampMs);
    if (treatment === "wait") {
      // Wait, then apply these pages. A new pull could be deferred for ever, since newer writes lie as far ahead.
      futureStamps.noteWaiting(peer.id, origin, stampMs);
      sync.cancel = this.#core.after(futureStamps.excessOf(stampMs), () => this.#finishLate(sync, end));
      return;
    }
    peer.acknowledged({ vv: end.upto, soon: end.soon });
    const upto = new Map(end.upto);
    if (sync.registers.some(({ o, s }) => !covers(upto, o, s) || controllerOf(o) === ""))
      throw new MalformedPage("transactions that it does not claim to have");
    // A floor within `upto` is bounded by the check of the origins.
    if (end.full && !dominates(upto, new Map(end.full.floor)))
      throw new MalformedPage("a floor of deletions that it does not claim to have");
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
    // The peer was restored to before a deletion that is forgotten here: it needs a full exchange from this controller first.
    if (!dominates(upto, this.#core.state.floor.vector)) return this.abandon();
    // A full exchange begins only after its last page: a peer that never ends it must not keep this controller from writing.
    if (end.full && !this.#core.beginFullExchange(this)) return this.abandon();
    inBackground(this.#merge(sync, end, upto));
  }

  async #merge(sync: Sync, end: PullEnd, upto: VersionVector): Promise<void> {
    try {
      // A full exchange changes the whole state, so no own write may be in the journal's queue.
      while (end.full && this.#core.commits.inFlight > 0) {
        await this.#core.sleep(20);
        if (this.#sync !== sync) return;
      }
      if (end.full) await this.#mergeAll(sync, end, upto);
      else if (sync.isRepair) await this.#mergeRepair(sync, end);
      else if (!dominates(this.#core.state.map.vector, upto)) await this.#mergeNews(sync, end);
    } catch (error) {
      this.abandon();
      throw error;
    }
    this.#done(sync);
  }

  async #mergeNews(sync: Sync, end: PullEnd): Promise<void> {
    const { state, commits } = this.#core;
    const news = end.upto.filter(([origin, seq]) => !covers(state.map.vector, origin, seq));
    await commits.commit(recordsOf(sync.pages, { upto: news, hlc: end.hlc }), sync.registers);
  }

  /**
   * Merges the differing registers that are covered already. The peer may have newer registers by now, also in other buckets, so neither
   * these nor the peer's version vector are merged.
   */
  async #mergeRepair(sync: Sync, { hlc }: PullEnd): Promise<void> {
    const registers = registersToRepair(this.#core, sync.registers);
    const records = recordsOf(pagesOf(registers).map(encodePage), { upto: [], hlc, repair: true });
    await Promise.all([
      deleteAgain(this.#core, this.#writer, sync.registers),
      this.#core.commits.commit(records, registers),
    ]);
  }

  /**
   * Merges a full exchange. Registers here that the peer has not seen may be older than a deletion that it forgot, if their stamps are below
   * its floor. They are written anew with later stamps: better a value too many than an acknowledged one lost.
   */
  async #mergeAll(sync: Sync, end: PullEnd, upto: VersionVector): Promise<void> {
    const { state, commits } = this.#core;
    const fields = { upto: end.upto, hlc: end.hlc, ...omitUndefined({ full: end.full }) };
    await commits.commit(recordsOf(sync.pages, fields), sync.registers);
    const old = [...state.map.all()].filter(
      (register) => !covers(upto, register.o, register.s) && compareStamps(register, state.floor.stamp) <= 0,
    );
    if (old.length > 0) await this.#writer.rewrite(old);
  }

  #done(sync: Sync): void {
    this.#core.futureStamps.noteAllTaken(this.#stream.peer.id);
    this.#core.endFullExchange(this);
    if (this.#sync !== sync) return;
    this.#sync = undefined;
    if (!sync.isRepair) this.#onSynced();
    const isPullDue = this.#isAskedAgain;
    this.#isAskedAgain = false;
    if (isPullDue && !dominates(this.#core.commits.accepted, this.#stream.peer.acked ?? new Map())) this.pull();
  }

  /**
   * Defers pulls from a peer with stamps too far ahead of this clock. Its pages lack the registers that these writes superseded, so
   * a version vector without these writes would claim missing registers. Pushes and other peers continue.
   */
  defer(origin: string, stampMs: number): void {
    this.abandon();
    const { tuning, options, futureStamps } = this.#core;
    const wait = Math.min(Math.max(futureStamps.excessOf(stampMs), 500), tuning.pullEvery);
    futureStamps.noteWaiting(this.#stream.peer.id, origin, stampMs);
    this.#deferral = { until: options.clock.mono() + wait, stampMs };
    this.#core.after(wait, () => this.pull());
  }
}

/** The journal records of a pull: its pages as `part`s, and the `apply` that makes them effective. */
function recordsOf(pages: readonly Page[], apply: ApplyFields): readonly JournalRecord[] {
  const parts = pages.slice(0, -1).map((page): JournalRecord => ({ t: "part", page }));
  return [...parts, { t: "apply", page: pages.at(-1) ?? emptyPage, ...apply }];
}
