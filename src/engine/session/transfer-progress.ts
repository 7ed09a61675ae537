import type { Emit } from "#engine/events/event.ts";
import type { Problem } from "#errors/problem.ts";
import { transferStalled } from "./problems.ts";

/** Milliseconds between two looks. */
const lookEvery = 1_000;
/** Looks over which the rate is taken. */
const ratedLooks = 5;
/** From so many bytes on it is told when all of it is there, however fast it was. */
const toldAlways = 1 << 20;
/** Bytes at the end of which a server need not say that they were taken. */
const untold = 256 << 10;
/** Bytes a second that a node hashes at least. */
const hashing = 1_000_000;

interface Piece {
  readonly name: string;
  readonly size: number;
  /** Bytes of this answer before it. */
  readonly from: number;
  since: number;
  isTold: boolean;
}

export interface TransferOptions {
  readonly node: string;
  /** Grows by the bytes that the node has taken. */
  readonly taken: () => number;
  readonly emit: Emit;
  /** Milliseconds for which nothing may move. */
  readonly stall: number;
  /** Nothing moved for that long; told once. */
  readonly onStall: (problem: Problem) => void;
  readonly now: () => number;
}

/**
 * The answer to one question for blobs, as it goes: how far it is, how fast, and whether it moves at all. A node that takes nothing any more
 * although its connection lives (a frozen process, a disk that hangs) would be waited for without end. A limit by time would end slow lines and wait for dead ones.
 */
export class TransferProgress {
  readonly #options: TransferOptions;
  readonly #pieces: Piece[] = [];
  /** The one before the first of them. */
  #before: Piece | undefined;
  readonly #base: number;
  readonly #looks: { readonly at: number; readonly moved: number }[] = [];
  #timer: NodeJS.Timeout | undefined;
  #written = 0;
  #isWhole = false;
  #isHeld = false;
  #moved = 0;
  #movedAt: number;
  #toldAt = 0;

  constructor(options: TransferOptions) {
    this.#options = options;
    this.#base = options.taken();
    this.#movedAt = options.now();
  }

  /** A large content comes next. */
  begin(name: string, size: number): void {
    const now = this.#options.now();
    if (this.#pieces.length === 0) [this.#movedAt, this.#toldAt] = [now, now];
    this.#pieces.push({ name, size, from: this.#written, since: now, isTold: false });
    this.#timer ??= setInterval(() => this.look(), lookEvery).unref();
  }

  /** So many bytes more are given to the connection. */
  write(bytes: number): void {
    this.#written += bytes;
  }

  /** All of it was given to the connection. */
  end(): void {
    this.#isWhole = true;
  }

  /** Something else is waited for, or no longer: meanwhile nothing has to move, and nothing is told. */
  hold(isHeld: boolean): void {
    this.#isHeld = isHeld;
  }

  /** The node goes on: it has all of it. */
  arrive(): void {
    for (const piece of this.#pieces.splice(0)) this.#tellEnd(piece);
    this.stop();
  }

  /** Nobody waits for it any more. */
  stop(): void {
    clearInterval(this.#timer);
    this.#timer = this.#before = undefined;
    this.#pieces.length = 0;
  }

  /** Once a second. */
  look(): void {
    const { taken, now, node, emit } = this.#options;
    const at = now();
    const moved = Math.max(this.#moved, taken() - this.#base);
    if (moved > this.#moved || this.#isHeld) [this.#moved, this.#movedAt] = [moved, at];
    if (this.#isHeld) return;
    this.#looks.push({ at, moved });
    if (this.#looks.length > ratedLooks + 1) this.#looks.shift();
    for (let [piece, next] = this.#pieces; piece && next && moved > next.from; [piece, next] = this.#pieces) {
      next.since = at;
      this.#tellEnd(piece);
      this.#before = this.#pieces.shift();
    }
    const [piece] = this.#pieces;
    if (!piece) return;
    const sent = Math.min(piece.size, Math.max(0, moved - piece.from));
    if (at - this.#movedAt >= this.#patience()) {
      const silent = Math.round((at - this.#movedAt) / 1_000);
      this.stop();
      this.#options.onStall(transferStalled({ ...this.#options, ...piece, sent, silent }));
      return;
    }
    // An hour's transfer must not fill the record: at each telling a sixtieth of the time so far goes by first.
    if (at - this.#toldAt < Math.max(lookEvery - 100, (at - piece.since) / 60)) return;
    this.#toldAt = at;
    piece.isTold = true;
    emit({ type: "node.sending", node, name: piece.name, sent, total: piece.size, ...this.#rate() });
  }

  #rate(): { readonly rate?: number } {
    const [first, last] = [this.#looks[0], this.#looks.at(-1)];
    if (!first || !last || last.at <= first.at) return {};
    return { rate: Math.round(((last.moved - first.moved) * 1_000) / (last.at - first.at)) };
  }

  /** When it has all of one, or may have, the node hashes it before it takes more, or before the runner says so. */
  #patience(): number {
    const { stall } = this.#options;
    if (this.#isWhole && this.#moved >= this.#written - untold) return stall + (this.#written * 1_000) / hashing;
    const [piece, before] = [this.#pieces[0], this.#before];
    if (!piece) return stall;
    const end = this.#moved >= piece.from + piece.size - untold ? piece.size : 0;
    const start = before && this.#moved <= piece.from + untold ? before.size : 0;
    return stall + ((start + end) * 1_000) / hashing;
  }

  #tellEnd({ name, size, since, isTold }: Piece): void {
    const { node, emit, now } = this.#options;
    if (!isTold && size < toldAlways) return;
    emit({ type: "node.sent", node, name, bytes: size, duration: now() - since });
  }
}
