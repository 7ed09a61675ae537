// “Convergent” (docs/replication.md): answers a pull: all that the peer lacks, page by page, then the version vector that the pages reach.
import { cutPage, pagesOf, startDelta, type DeltaCursor } from "#crdt/delta.ts";
import { bucketOf } from "#crdt/digest.ts";
import { encodeStamp } from "#crdt/hlc.ts";
import { encodePage } from "#crdt/page.ts";
import { dominates, toWire } from "#crdt/version-vector.ts";
import type { Core } from "./replica-core.ts";
import type { MessageOf, PullEnd } from "./messages.ts";
import type { PeerStream } from "./peer.ts";

type Pull = MessageOf<"pull">;

/** Answers a peer's pull page by page, as far as the peer's credit allows. */
export class PageSender {
  readonly #core: Core;
  readonly #stream: PeerStream;
  #serving:
    { readonly pull: Pull; readonly isFull: boolean; cursor: DeltaCursor; index: number; credit: number } | undefined;
  /** The number of the last pull. */
  #lastSync = 0;

  constructor(core: Core, stream: PeerStream) {
    this.#core = core;
    this.#stream = stream;
  }

  async pull(pull: Pull): Promise<void> {
    const { state, commits } = this.#core;
    // A pull's number must exceed the last one: pages of a repeated or late pull must not mix with another's.
    if (pull.sync <= this.#lastSync) return;
    this.#lastSync = pull.sync;
    if (!state.ready || this.#core.fullExchange) return;
    if (pull.buckets) return commits.inTurn(() => this.#serveBuckets(pull, new Set(pull.buckets)));
    const seen = new Map(pull.vv);
    // A peer that has not seen a forgotten deletion gets all registers, and drops its others.
    const isFull = !dominates(seen, state.floor.vector);
    const cursor = startDelta(state.map, isFull ? new Map() : seen);
    this.#serving = { pull, isFull, cursor, index: 0, credit: pull.window };
    await commits.inTurn(() => this.#send());
  }

  async credit(sync: number): Promise<void> {
    if (this.#serving?.pull.sync !== sync) return;
    this.#serving.credit++;
    await this.#core.commits.inTurn(() => this.#send());
  }

  stop(): void {
    this.#serving = undefined;
  }

  #send(): void {
    const serving = this.#serving;
    if (!serving) return;
    const { map, floor } = this.#core.state;
    while (serving.credit > 0) {
      const { registers, next } = cutPage(map, serving.cursor, this.#core.tuning.page);
      // Tombstones that the peer needs were collected meanwhile: the peer pulls again, and gets a full exchange.
      if (!serving.isFull && !dominates(new Map(serving.pull.vv), floor.vector)) return this.stop();
      this.#stream.send({
        t: "page",
        sync: serving.pull.sync,
        index: serving.index++,
        full: serving.isFull,
        page: encodePage(registers),
        ...(next ? {} : { end: this.#end(serving.isFull) }),
      });
      if (!next) return this.stop();
      serving.credit--;
      serving.cursor = next;
    }
  }

  #end(isFull: boolean): PullEnd {
    const { map, clock, floor } = this.#core.state;
    return {
      upto: toWire(map.vector),
      ...this.#core.commits.underway(),
      hlc: encodeStamp(clock),
      ...(isFull ? { full: { floor: toWire(floor.vector), hlc: encodeStamp(floor.stamp) } } : {}),
    };
  }

  /** A repair is rare and small; it is sent at once, page by page. */
  #serveBuckets({ sync }: Pull, buckets: ReadonlySet<number>): void {
    const registers = [...this.#core.state.map.all()].filter(({ key }) => buckets.has(bucketOf(key)));
    const pages = pagesOf(registers, this.#core.tuning.page);
    for (const [index, page] of pages.entries()) {
      const end = index === pages.length - 1 ? { end: this.#end(false) } : {};
      this.#stream.send({ t: "page", sync, index, full: false, page: encodePage(page), ...end });
    }
  }
}
