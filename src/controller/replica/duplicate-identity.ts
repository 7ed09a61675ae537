// “Numbers are used once” (docs/replication.md): of two processes that run as one controller, the one at the wrong address does not write.
import type { ReplicaContext } from "./replica-context.ts";

/** The time after which a sighting of a duplicate expires, ms: duplicates dial the other controllers every few seconds. */
const sightingLifeMs = 20_000;

/**
 * Detects two processes with one controller's id and key: a copied folder, a cloned machine. A peer that sees both raises the
 * alarm. The process that does not answer at the registered address refuses writes, since no peer would take them.
 */
export class DuplicateIdentity {
  readonly #core: ReplicaContext;
  /** Sightings and refusals by name: the cancellation of the timer, and the action when they end. */
  readonly #timed = new Map<string, { readonly cancel: () => void; readonly onEnd: () => void }>();
  /** Peers that refuse this process because they are connected to the other one. */
  readonly #refusedBy = new Set<string>();
  /** The (monotonic) time at which this process last answered at the controller's registered address. */
  #answeredAt = -Infinity;

  constructor(core: ReplicaContext) {
    this.#core = core;
  }

  /**
   * Whether this process must not write, because a peer refuses it in favour of the other process. A process that answers at the
   * registered address, and that some peer lets in, may write.
   */
  get mustNotWrite(): boolean {
    if (this.#refusedBy.size === 0) return false;
    const { options, tuning, peers } = this.#core;
    const isAtAddress = options.clock.mono() - this.#answeredAt < tuning.dialItselfEvery + sightingLifeMs;
    const isLetIn = [...peers.values()].some(({ id, stream }) => stream?.isOpen === true && !this.#refusedBy.has(id));
    return !(isAtAddress && isLetIn);
  }

  /** Called when a process answered at the registered address: this one (`isThis`), or another one. */
  answeredAtAddress(isThis: boolean): void {
    this.#answeredAt = isThis ? this.#core.options.clock.mono() : -Infinity;
  }

  /** Called when two processes run as controller `id`: `reporter` reports both, or this controller has found them. */
  noteSighting(id: string, text: string, reporter = ""): void {
    this.#core.alarms.raise("TWO_COPIES", id, text);
    this.#startTimer(`seen ${id} ${reporter}`, () => {
      const isSeen = [...this.#timed.keys()].some((name) => name.startsWith(`seen ${id} `));
      if (!isSeen) this.#core.alarms.clear("TWO_COPIES", id);
    });
  }

  /** Called when `reporter` refuses this process, because the other process is connected to it. */
  refused(reporter: string, text: string): void {
    const { id } = this.#core.options;
    this.noteSighting(id, reporter === id ? text : `${reporter} says that ${text}`, reporter);
    this.#refusedBy.add(reporter);
    this.#startTimer(`refused ${reporter}`, () => this.#refusedBy.delete(reporter));
  }

  /** Called when `reporter` lets this process in. */
  accepted(reporter: string): void {
    this.#end(`refused ${reporter}`);
    this.#end(`seen ${this.#core.options.id} ${reporter}`);
    // A duplicate of `reporter` may be gone, too.
    this.#end(`seen ${reporter} `);
  }

  #startTimer(name: string, onEnd: () => void): void {
    this.#timed.get(name)?.cancel();
    this.#timed.set(name, { cancel: this.#core.after(sightingLifeMs, () => this.#end(name)), onEnd });
  }

  #end(name: string): void {
    const timed = this.#timed.get(name);
    timed?.cancel();
    this.#timed.delete(name);
    timed?.onEnd();
  }
}

export function describeDuplicate(id: string, one: string, other: string): string {
  return (
    `two processes run as controller ${id} with its key: at ${one} and at ${other}. Stop the one that should not be ` +
    "(systemctl disable --now kcore-controller); writes that only the stopped process accepted are lost. " +
    "To make another controller of the stopped one: kcore controller join --fresh there, and deploy it with an id of its own"
  );
}
