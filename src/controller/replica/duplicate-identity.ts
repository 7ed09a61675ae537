// “Numbers are used once” (docs/replication.md): of two processes that run as one controller, the one at the wrong address does not write.
import type { ReplicaContext } from "./context.ts";

/** The time after which a sighting of a duplicate expires, ms: duplicates dial the other controllers every few seconds. */
const keptFor = 20_000;

/**
 * Detects two processes with one controller's id and key: a copied folder, a cloned machine. A peer that sees both raises the
 * alarm. The process that does not answer at the registered address refuses writes, since no peer would take them.
 */
export class DuplicateIdentity {
  readonly #core: ReplicaContext;
  /** Sightings and refusals by name: the cancellation of the timer, and the action when they end. */
  readonly #kept = new Map<string, { readonly cancel: () => void; readonly over: () => void }>();
  /** Peers that refuse this process because they are connected to the other one. */
  readonly #refusedBy = new Set<string>();
  /** The time since which this process answers at the controller's registered address. */
  #atHomeSince = -Infinity;

  constructor(core: ReplicaContext) {
    this.#core = core;
  }

  /**
   * Whether this process must not write, because a peer refuses it for the other one. A process that answers at the registered
   * address, and that some peer lets in, may write.
   */
  get isOneTooMany(): boolean {
    if (this.#refusedBy.size === 0) return false;
    const { options, tuning, peers } = this.#core;
    const isAtHome = options.clock.mono() - this.#atHomeSince < tuning.dialItselfEvery + keptFor;
    const isLetIn = [...peers.values()].some(({ id, stream }) => stream?.isOpen === true && !this.#refusedBy.has(id));
    return !(isAtHome && isLetIn);
  }

  /** Called when a process answered at the registered address: `isThis`, or another one. */
  answeredAtHome(isThis: boolean): void {
    this.#atHomeSince = isThis ? this.#core.options.clock.mono() : -Infinity;
  }

  /** Called when two processes run as controller `id`: `reporter` reports both, or this controller has found them. */
  see(id: string, text: string, reporter = ""): void {
    this.#core.alarms.raise("TWO_COPIES", id, text);
    this.#keep(`seen ${id} ${reporter}`, () => {
      const isTold = [...this.#kept.keys()].some((name) => name.startsWith(`seen ${id} `));
      if (!isTold) this.#core.alarms.clear("TWO_COPIES", id);
    });
  }

  /** Called when `reporter` refuses this process, because it is connected to the other one. */
  refused(reporter: string, text: string): void {
    const { id } = this.#core.options;
    this.see(id, reporter === id ? text : `${reporter} says that ${text}`, reporter);
    this.#refusedBy.add(reporter);
    this.#keep(`refused ${reporter}`, () => this.#refusedBy.delete(reporter));
  }

  /** Called when `reporter` lets this process in. */
  accepted(reporter: string): void {
    this.#end(`refused ${reporter}`);
    this.#end(`seen ${this.#core.options.id} ${reporter}`);
    // `reporter` itself may have had a duplicate, which may be gone.
    this.#end(`seen ${reporter} `);
  }

  #keep(name: string, over: () => void): void {
    this.#kept.get(name)?.cancel();
    this.#kept.set(name, { cancel: this.#core.after(keptFor, () => this.#end(name)), over });
  }

  #end(name: string): void {
    const kept = this.#kept.get(name);
    kept?.cancel();
    this.#kept.delete(name);
    kept?.over();
  }
}

export function describeDuplicate(id: string, one: string, other: string): string {
  return (
    `two processes run as controller ${id} with its key: at ${one} and at ${other}. Stop the one that should not be ` +
    "(systemctl disable --now kcore-controller); writes that only it accepted are lost unless it is the one that goes on. " +
    "To make a controller of its own of it: kcore controller join --fresh, and deploy it with an id of its own"
  );
}
