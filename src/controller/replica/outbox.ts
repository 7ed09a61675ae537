// “Convergent” (docs/replication.md): each own transaction is pushed whole to every peer, once it is durable.
import { pageLimits } from "#crdt/delta.ts";
import { encodePage } from "#crdt/page.ts";
import type { Register } from "#crdt/register.ts";
import { inBackground } from "./commit-queue.ts";
import type { Core } from "./replica-core.ts";
import type { PeerStream } from "./peer.ts";

/**
 * The latest own durable transactions, complete as written, for pushing. (A page cut from the map would leave out
 * superseded registers and yet claim them.) Peers pull older ones.
 */
export class Outbox {
  readonly #core: Core;
  #transactions: (readonly Register[])[] = [];
  #registers = 0;
  /** The seq before the first transaction here. */
  #before = 0;
  #last = 0;
  #origin = "";
  #isPushing = false;
  /** For each connection the last transaction that the peer was sent or had acknowledged. */
  readonly #sent = new WeakMap<PeerStream, { readonly origin: string; readonly seq: number }>();

  constructor(core: Core) {
    this.#core = core;
  }

  add(transaction: readonly Register[]): void {
    const { o, s } = transaction[0] as Register;
    if (o !== this.#origin) {
      this.#transactions = [];
      this.#registers = 0;
      this.#origin = o;
      this.#before = this.#last = s - 1;
    }
    this.#transactions.push(transaction);
    this.#registers += transaction.length;
    this.#last = s;
    while (this.#registers > this.#core.tuning.outboxRegisters && this.#transactions.length > 1) {
      const dropped = this.#transactions.shift() as readonly Register[];
      this.#registers -= dropped.length;
      this.#before = (dropped[0] as Register).s;
    }
    if (!this.#isPushing) inBackground(this.#pushToAll());
  }

  /** Pushes in the next turn of the event loop, so that the transactions of one group commit are pushed together. */
  async #pushToAll(): Promise<void> {
    this.#isPushing = true;
    await this.#core.nextTurn();
    this.#isPushing = false;
    for (const { stream } of this.#core.peers.values()) if (stream?.isOpen) this.#push(stream);
  }

  /** Called for an opened connection: pushes all that its peer has not acknowledged. */
  opened(stream: PeerStream): void {
    const { origin } = this.#core.generation;
    this.#sent.set(stream, { origin, seq: stream.peer.acked?.get(origin) ?? 0 });
    this.#push(stream);
  }

  /** Pushes the transactions that this stream has not sent yet; if they are too many or too large, a `have` makes the peer pull. */
  #push(stream: PeerStream): void {
    const sent = this.#sent.get(stream);
    const from = sent?.origin === this.#origin ? sent.seq : this.#before;
    if (from >= this.#last) return;
    this.#sent.set(stream, { origin: this.#origin, seq: this.#last });
    // Transactions of a former origin are pulled: peers may refuse that origin.
    if (from < this.#before || this.#origin !== this.#core.generation.origin) return stream.sendHave();
    const registers = this.#transactions.filter(([first]) => (first as Register).s > from).flat();
    if (registers.reduce((sum, { text }) => sum + (text?.length ?? 0), 0) > pageLimits.bytes) return stream.sendHave();
    stream.send({ t: "push", page: encodePage(registers), origin: this.#origin, from, upto: this.#last });
  }
}
