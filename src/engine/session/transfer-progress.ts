import type { Emit } from "#engine/events/event.ts";
import type { Problem } from "#errors/problem.ts";
import { transferStalled } from "./problems.ts";

/** Milliseconds between two samples. */
const sampleEvery = 1_000;
/** Samples over which the rate is measured. */
const ratedSamples = 5;
/** The end of a transfer of this size is reported even if the transfer took less than a second. */
const alwaysReported = 1 << 20;
/** Bytes at the end of a content that an sshd can have taken without acknowledging them. */
const unacknowledged = 256 << 10;
/** Bytes a second that a node hashes at least. */
const hashRate = 1_000_000;

interface Transfer {
  readonly name: string;
  readonly size: number;
  /** Bytes of the answer before this content. */
  readonly from: number;
  since: number;
  isReported: boolean;
}

export interface TransferOptions {
  readonly node: string;
  /** Bytes that the node has taken, counted from an arbitrary start. */
  readonly bytesTaken: () => number;
  readonly emit: Emit;
  /** Milliseconds without progress after which the transfer has stalled. */
  readonly stall: number;
  /** Called once, after that time. */
  readonly onStall: (problem: Problem) => void;
  readonly now: () => number;
}

/**
 * The progress of the answer to one request for blobs. A node can stop taking bytes although its connection lives: a frozen process, a disk
 * that hangs. So the limit is on the time without progress; a limit on the whole time would also end slow connections.
 */
export class TransferProgress {
  readonly #options: TransferOptions;
  readonly #transfers: Transfer[] = [];
  /** The last finished transfer. */
  #before: Transfer | undefined;
  readonly #base: number;
  readonly #samples: { readonly at: number; readonly moved: number }[] = [];
  #timer: NodeJS.Timeout | undefined;
  #written = 0;
  #isWhole = false;
  #isHeld = false;
  #moved = 0;
  #movedAt: number;
  #reportedAt = 0;

  constructor(options: TransferOptions) {
    this.#options = options;
    this.#base = options.bytesTaken();
    this.#movedAt = options.now();
  }

  /** A content is sent next. */
  begin(name: string, size: number): void {
    const now = this.#options.now();
    if (this.#transfers.length === 0) [this.#movedAt, this.#reportedAt] = [now, now];
    this.#transfers.push({ name, size, from: this.#written, since: now, isReported: false });
    this.#timer ??= setInterval(() => this.sample(), sampleEvery).unref();
  }

  /** This many further bytes were given to the connection. */
  write(bytes: number): void {
    this.#written += bytes;
  }

  /** The whole answer was given to the connection. */
  end(): void {
    this.#isWhole = true;
  }

  /** While held, the answer waits for another node: no progress is expected or reported. */
  hold(isHeld: boolean): void {
    this.#isHeld = isHeld;
  }

  /** The node continues: the whole answer has arrived. */
  arrive(): void {
    for (const transfer of this.#transfers.splice(0)) this.#reportEnd(transfer);
    this.stop();
  }

  /** The answer is no longer needed. */
  stop(): void {
    clearInterval(this.#timer);
    this.#timer = this.#before = undefined;
    this.#transfers.length = 0;
  }

  /** Takes a sample; called once a second. */
  sample(): void {
    const { bytesTaken, now, node, emit } = this.#options;
    const at = now();
    const moved = Math.max(this.#moved, bytesTaken() - this.#base);
    if (moved > this.#moved || this.#isHeld) [this.#moved, this.#movedAt] = [moved, at];
    if (this.#isHeld) return;
    this.#samples.push({ at, moved });
    if (this.#samples.length > ratedSamples + 1) this.#samples.shift();
    for (
      let [transfer, next] = this.#transfers;
      transfer && next && moved > next.from;
      [transfer, next] = this.#transfers
    ) {
      next.since = at;
      this.#reportEnd(transfer);
      this.#before = this.#transfers.shift();
    }
    const [transfer] = this.#transfers;
    if (!transfer) return;
    const sent = Math.min(transfer.size, Math.max(0, moved - transfer.from));
    if (at - this.#movedAt >= this.#patience()) {
      const silent = Math.round((at - this.#movedAt) / 1_000);
      this.stop();
      this.#options.onStall(transferStalled({ ...this.#options, ...transfer, sent, silent }));
      return;
    }
    // A long transfer must not fill the record, so the pause between reports grows to a sixtieth of the time so far.
    if (at - this.#reportedAt < Math.max(sampleEvery - 100, (at - transfer.since) / 60)) return;
    this.#reportedAt = at;
    transfer.isReported = true;
    emit({ type: "node.sending", node, name: transfer.name, sent, total: transfer.size, ...this.#rate() });
  }

  #rate(): { readonly rate?: number } {
    const [first, last] = [this.#samples[0], this.#samples.at(-1)];
    if (!first || !last || last.at <= first.at) return {};
    return { rate: Math.round(((last.moved - first.moved) * 1_000) / (last.at - first.at)) };
  }

  /** A node that has a whole content hashes it before it takes more bytes, or before the runner continues. */
  #patience(): number {
    const { stall } = this.#options;
    if (this.#isWhole && this.#moved >= this.#written - unacknowledged)
      return stall + (this.#written * 1_000) / hashRate;
    const [transfer, before] = [this.#transfers[0], this.#before];
    if (!transfer) return stall;
    const end = this.#moved >= transfer.from + transfer.size - unacknowledged ? transfer.size : 0;
    const start = before && this.#moved <= transfer.from + unacknowledged ? before.size : 0;
    return stall + ((start + end) * 1_000) / hashRate;
  }

  #reportEnd({ name, size, since, isReported }: Transfer): void {
    const { node, emit, now } = this.#options;
    if (!isReported && size < alwaysReported) return;
    emit({ type: "node.sent", node, name, bytes: size, duration: now() - since });
  }
}
