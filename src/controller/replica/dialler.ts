// “Convergent” (docs/replication.md): a controller that can be reached again is connected again, within seconds.
import { createBackoff, type Backoff } from "#base/backoff.ts";
import type { Core } from "./replica-core.ts";
import type { DialTarget } from "./replica-ports.ts";

/** Keeps connections to all registered controllers; until this controller is a member, dials the configured addresses. */
export class Dialler {
  readonly #core: Core;
  readonly #isConnected: (id: string) => boolean;
  readonly #scheduled = new Set<string>();
  readonly #addresses = new Map<string, Backoff>();

  constructor(core: Core, isConnected: (id: string) => boolean) {
    this.#core = core;
    this.#isConnected = isConnected;
  }

  start(): void {
    const { options, tuning } = this.#core;
    for (const address of options.join ?? []) {
      const pauses = { base: 1_000, cap: tuning.backOffCap, random: options.rng, least: 0 };
      this.#addresses.set(address, createBackoff(pauses));
      this.#scheduleAddress(address);
    }
    for (const id of this.#core.others) this.dialLater(id);
    // Soon after the start, then at intervals: another process may answer at this controller's own address.
    this.#core.after(1_000, () => this.dialItself());
    this.#core.every(this.#core.tuning.dialItselfEvery, () => this.dialItself());
  }

  /** Dials a peer after its back-off, unless it is connected or no longer a member. */
  dialLater(id: string): void {
    if (this.#scheduled.has(id)) return;
    this.#scheduled.add(id);
    const peer = this.#core.peerOf(id);
    this.#core.after(peer.backOff.next(), () => {
      this.#scheduled.delete(id);
      if (!this.#isConnected(id)) this.dial(id);
    });
  }

  /** Dials a member at once, even beside an existing connection. */
  dial(id: string): void {
    const peer = this.#core.peerOf(id);
    if (peer.isDialling || !this.#core.others.includes(id)) return;
    peer.setDialling(true);
    this.#core.options.net.dial({ id }, peer.rtt.connectTimeout);
  }

  /** Dials this controller's registered address, where a duplicate may answer. */
  dialItself(): void {
    const { options, members, state } = this.#core;
    if (state.ready && members.includes(options.id)) options.net.dial({ id: options.id }, 2_000);
  }

  connected(id: string): void {
    this.#core.peerOf(id).setDialling(false);
  }

  failed(target: DialTarget): void {
    if ("address" in target) return this.#scheduleAddress(target.address);
    if (target.id === this.#core.options.id) return this.#core.duplicates.accepted(target.id);
    this.#core.peerOf(target.id).setDialling(false);
    this.dialLater(target.id);
  }

  /** Dials a configured address while no peer is connected, until this controller is a member: then registers name the other controllers. */
  #scheduleAddress(address: string): void {
    const backOff = this.#addresses.get(address);
    if (!backOff) return;
    this.#core.after(backOff.next(), () => {
      const isIn = this.#core.state.ready && this.#core.members.includes(this.#core.options.id);
      if (isIn || [...this.#core.peers.values()].some(({ stream }) => stream?.isOpen))
        return void this.#core.after(1000, () => this.#scheduleAddress(address));
      this.#core.options.net.dial({ address }, 5000);
    });
  }
}
