// “Convergent” (docs/replication.md): a connection that died silently is found by pings, and replaced.
import type { Core } from "./replica-core.ts";
import type { Peer } from "./peer.ts";

/** The unanswered pings after which the connection is closed. */
const maxMisses = 3;
/** The unanswered pings after which a second connection is tried: TCP may stay silent long after a network cut has healed. */
const silentMisses = 2;

export interface PingerPorts {
  /** Sends a ping with this number, if the connection is open. */
  readonly send: (n: number) => void;
  /** Called with the second and the third ping of a row without an answer. */
  readonly onSilent: () => void;
  readonly onDead: () => void;
}

/**
 * Pings the peer of one connection, to find half-open TCP connections: three unanswered pings end it. The next ping comes sooner on a
 * silent link, and when there is news.
 */
export class Pinger {
  readonly #core: Core;
  readonly #peer: Peer;
  readonly #ports: PingerPorts;
  #n = 0;
  #sentAt = 0;
  #misses = 0;
  #isHurried = false;
  #cancel: () => void = () => undefined;
  readonly #probes = new Set<{ readonly n: number; readonly end: (isAlive: boolean) => void }>();

  constructor(core: Core, peer: Peer, ports: PingerPorts) {
    this.#core = core;
    this.#peer = peer;
    this.#ports = ports;
    this.restart();
  }

  /** Schedules the next ping anew, once the round trip is known. */
  restart(): void {
    this.#plan(this.#peer.rtt.pingAgain);
  }

  stop(): void {
    this.#cancel();
    for (const { end } of this.#probes) end(false);
  }

  /** Called for each message of the peer. */
  heard(): void {
    this.#misses = 0;
  }

  /** Called when the peer pinged. Pings back if half the interval is over: two peers that ping in step wake up half as often. */
  pinged(): void {
    const { options, tuning } = this.#core;
    if (options.clock.mono() - this.#sentAt >= tuning.pingEvery / 2) this.#send();
  }

  /** Pings at once; resolves with whether the peer answered in time. */
  probe(): Promise<boolean> {
    this.#send();
    return new Promise((resolve) => {
      const end = (isAlive: boolean): void => {
        if (!this.#probes.delete(probe)) return;
        cancel();
        resolve(isAlive);
      };
      const probe = { n: this.#n, end };
      this.#probes.add(probe);
      const cancel = this.#core.after(Math.min(2_000, Math.max(300, 4 * this.#peer.rtt.rto)), () => end(false));
    });
  }

  /** Called for a pong. Returns the monotonic time at which its ping was sent; undefined if that was not the last ping. */
  answered(n: number): number | undefined {
    for (const probe of this.#probes) if (n >= probe.n) probe.end(true);
    if (n !== this.#n) return undefined;
    this.#plan(this.#isHurried ? this.#peer.rtt.pingAgain / 2 : this.#core.tuning.pingEvery);
    return this.#sentAt;
  }

  /** Brings the next ping forward, since new records became durable here: its version vector tells the peer of them. */
  hurry(): void {
    if (this.#isHurried) return;
    this.#isHurried = true;
    if (this.#misses === 0) this.#plan(this.#peer.rtt.pingAgain / 2);
  }

  #plan(ms: number): void {
    this.#cancel();
    this.#cancel = this.#core.after(ms, () => {
      if (this.#misses >= maxMisses) {
        this.#peer.rtt.timedOut();
        return this.#ports.onDead();
      }
      this.#send();
      if (this.#misses >= silentMisses) this.#ports.onSilent();
    });
  }

  #send(): void {
    this.#isHurried = false;
    this.#misses++;
    this.#n++;
    this.#sentAt = this.#core.options.clock.mono();
    this.#plan(this.#peer.rtt.pingAgain);
    this.#ports.send(this.#n);
  }
}
