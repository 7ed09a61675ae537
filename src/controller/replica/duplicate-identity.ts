// Promise of docs/replication.md: Numbers are used once.
import type { Alarms } from "./alarms.ts";
import type { Peer } from "./peer.ts";

/** What is known of the replica here. */
interface Place {
  readonly alarms: Alarms;
  readonly options: { readonly id: string; readonly clock: { readonly mono: () => number } };
  readonly tuning: { readonly dialItselfEvery: number };
  readonly peers: ReadonlyMap<string, Peer>;
  /** A timer that dies with the replica; the result cancels it. */
  readonly after: (ms: number, run: () => void) => () => void;
}

/** Two processes that run as one controller meet the others every few seconds; an alarm about what is over goes. */
const keptFor = 20_000;

/**
 * Two processes with one controller's id and key: a copied folder, a machine that was cloned. Whoever sees both tells; the later one, and
 * the one that does not stand at the registered address, takes no writes, because nobody would let it hand them on.
 */
export class DuplicateIdentity {
  readonly #core: Place;
  /** What is kept for a while: how its timer is cancelled, and what is done at its end. */
  readonly #kept = new Map<string, { readonly cancel: () => void; readonly over: () => void }>();
  /** Who has refused this process because of another one. */
  readonly #refusedBy = new Set<string>();
  /** When this process was last answered by itself at the controller's registered address. */
  #atHomeSince = -Infinity;

  constructor(core: Place) {
    this.#core = core;
  }

  /**
   * Whether this process is the one that is not let in. One that stands at the registered address and is let in by anybody goes on: who
   * refuses it speaks to a copy, or lies.
   */
  get isOneTooMany(): boolean {
    if (this.#refusedBy.size === 0) return false;
    const { options, tuning, peers } = this.#core;
    const isAtHome = options.clock.mono() - this.#atHomeSince < tuning.dialItselfEvery + keptFor;
    const isLetIn = [...peers.values()].some(({ id, stream }) => stream?.isOpen === true && !this.#refusedBy.has(id));
    return !(isAtHome && isLetIn);
  }

  /** Who answers at the registered address is this process, or another one. */
  answeredAtHome(isThis: boolean): void {
    this.#atHomeSince = isThis ? this.#core.options.clock.mono() : -Infinity;
  }

  /** Both are seen from here, or were told of by `teller`, who sees both. */
  see(id: string, text: string, teller = ""): void {
    this.#core.alarms.raise("TWO_COPIES", id, text);
    this.#keep(`seen ${id} ${teller}`, () => {
      const isTold = [...this.#kept.keys()].some((name) => name.startsWith(`seen ${id} `));
      if (!isTold) this.#core.alarms.clear("TWO_COPIES", id);
    });
  }

  /** `teller` does not let this process in, because it speaks to the other one. */
  refused(teller: string, text: string): void {
    const { id } = this.#core.options;
    this.see(id, teller === id ? text : `${teller} says that ${text}`, teller);
    this.#refusedBy.add(teller);
    this.#keep(`refused ${teller}`, () => this.#refusedBy.delete(teller));
  }

  /** `teller` lets this process in. */
  accepted(teller: string): void {
    this.#end(`refused ${teller}`);
    this.#end(`seen ${this.#core.options.id} ${teller}`);
    // The other one may be gone just as well.
    this.#end(`seen ${teller} `);
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
    "(systemctl disable --now kcore-controller); what only it has taken is lost unless it is the one that goes on. " +
    "To make a controller of its own of it: kcore controller join --fresh, and deploy it with an id of its own"
  );
}
