import type { PeerMessage } from "#controller/replica/messages.ts";
import type { LinkEvents, PeerLink } from "#controller/replica/replica-ports.ts";
import type { Random } from "#support/random.ts";
import type { Scheduler } from "./scheduler.ts";
import type { Swarm } from "./swarm.ts";

/** A process on the network. */
export interface SimProcess {
  readonly id: string;
  /** Undefined while the process is down. */
  readonly accept: ((link: PeerLink) => LinkEvents) | undefined;
  /** Runs a callback in the process: later if the process is paused, never if it has died. */
  readonly deliver: (run: () => void) => void;
  /** Another number after the disk was set back, which takes longer than a packet lives. */
  readonly lineage: number;
}

type Faults = Pick<Swarm, "drop" | "duplicate" | "reorder" | "slow" | "json">;

interface Side {
  readonly endpoint: SimProcess;
  readonly accept: unknown;
  events: LinkEvents | undefined;
  lastArrival: number;
}

/** A virtual network: dials, and links that lose, repeat, reorder, delay or swallow messages. */
export class SimNetwork {
  readonly #scheduler: Scheduler;
  readonly #random: Random;
  readonly #swarm: Faults;
  isHealed = false;
  /** Ordered pairs `from>to` without any traffic. */
  readonly blocked = new Set<string>();
  /** Ordered pairs `from>to` of which `from` cannot connect to `to`. */
  readonly undiallable = new Set<string>();
  sent = 0;
  dropped = 0;
  /** Called with each message, also with lost ones. */
  onSend: (message: PeerMessage) => void = () => undefined;

  constructor(scheduler: Scheduler, random: Random, swarm: Faults) {
    this.#scheduler = scheduler;
    this.#random = random;
    this.#swarm = swarm;
  }

  heal(): void {
    this.isHealed = true;
    this.blocked.clear();
    this.undiallable.clear();
  }

  dial(from: SimProcess, to: SimProcess | undefined, timeoutMs: number, onFailed: () => void): void {
    const isOpen = (): boolean =>
      to?.accept !== undefined &&
      !this.blocked.has(`${from.id}>${to.id}`) &&
      !this.blocked.has(`${to.id}>${from.id}`) &&
      !this.undiallable.has(`${from.id}>${to.id}`);
    const accept = from.accept;
    this.#scheduler.after(isOpen() ? this.#random.between(1, 30) : timeoutMs, () =>
      from.deliver(() => {
        if (from.accept !== accept || !accept) return;
        if (!to || !isOpen()) return onFailed();
        this.#connect(from, to);
      }),
    );
  }

  #connect(from: SimProcess, to: SimProcess): void {
    const a: Side = { endpoint: from, accept: from.accept, events: undefined, lastArrival: 0 };
    const b: Side = { endpoint: to, accept: to.accept, events: undefined, lastArrival: 0 };
    a.events = from.accept?.(this.#link(a, b, true));
    to.deliver(() => {
      if (b.accept === to.accept) b.events = to.accept?.(this.#link(b, a, false));
    });
  }

  #link(own: Side, other: Side, initiator: boolean): PeerLink {
    let isClosed = false;
    return {
      peer: other.endpoint.id,
      initiator,
      send: (message) => {
        if (!isClosed) this.#send(own, other, message);
      },
      close: () => {
        if (isClosed) return;
        isClosed = true;
        this.#scheduler.after(this.#random.between(1, 30), () => {
          if (!this.#isBlocked(own, other)) this.#deliver(other, (events) => events.closed());
        });
      },
    };
  }

  #isBlocked(own: Side, other: Side): boolean {
    return this.blocked.has(`${own.endpoint.id}>${other.endpoint.id}`);
  }

  #send(own: Side, other: Side, message: PeerMessage): void {
    this.sent++;
    this.onSend(message);
    const { drop, duplicate, reorder, slow, json } = this.#swarm;
    const isHealed = this.isHealed;
    if (this.#isBlocked(own, other) || (!isHealed && this.#random.chance(drop))) {
      this.dropped++;
      return;
    }
    const value: unknown = json ? JSON.parse(JSON.stringify(message)) : message;
    let delay = this.#random.between(0.5, 40);
    if (!isHealed && this.#random.chance(slow)) delay += this.#random.between(100, 15_000);
    let at = this.#scheduler.now + delay;
    if (!reorder) at = other.lastArrival = Math.max(at, other.lastArrival + 0.001);
    const { lineage } = own.endpoint;
    const arrive = (): void => {
      if (own.endpoint.lineage === lineage) this.#deliver(other, (events) => events.received(value));
    };
    this.#scheduler.after(at - this.#scheduler.now, arrive);
    if (!isHealed && this.#random.chance(duplicate))
      this.#scheduler.after(delay + this.#random.between(0, 20_000), arrive);
  }

  #deliver(to: Side, run: (events: LinkEvents) => void): void {
    to.endpoint.deliver(() => {
      // A restarted process does not know the former one's links.
      if (to.events && to.accept === to.endpoint.accept) run(to.events);
    });
  }
}
