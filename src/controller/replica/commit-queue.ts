// “Durable” (docs/replication.md): each change is journaled first; only then it counts here, and goes to peers.
import type { Register } from "#crdt/register.ts";
import { covers, raise, type VersionVector } from "#crdt/version-vector.ts";
import type { Alarms } from "./alarms.ts";
import type { ClusterState } from "./cluster-state.ts";
import type { Underway } from "./messages.ts";
import { WriteRefused, type Database } from "./replica.ts";
import type { JournalRecord } from "./replica-ports.ts";

interface CommitPorts {
  readonly db: Database;
  readonly alarms: Alarms;
  /** The most registers that are merged in one turn of the event loop, except a push, which is merged whole. */
  readonly slice: number;
  /** Resolves in the next turn of the event loop; never once the replica has stopped. */
  readonly nextTurn: () => Promise<void>;
}

/**
 * The one way to change the state: records are journaled, then applied in the order of the journal. All waiting is by promises, which
 * settle before the next turn of the event loop, and before the simulator's next event. So one seed decides the order.
 */
export class CommitQueue {
  readonly #ports: CommitPorts;
  readonly #state: ClusterState;
  readonly #accepted = new Map<string, number>();
  /** Records that are being journaled, or are durable and wait to be applied. */
  readonly #journaling = new Set<readonly JournalRecord[]>();
  readonly #listeners = new Set<(keys: readonly string[]) => void>();
  /** Resolves when the last work in line is done. */
  #line: Promise<unknown> = Promise.resolve();

  constructor(ports: CommitPorts) {
    this.#ports = ports;
    this.#state = ports.db.data;
    raise(this.#accepted, this.#state.map.vector);
  }

  /** The version vector as it will be when everything that is being journaled is applied. */
  get accepted(): VersionVector {
    return this.#accepted;
  }

  /** The number of appends that are not applied yet. */
  get inFlight(): number {
    return this.#journaling.size;
  }

  /**
   * Journals records as one, and applies them once they are durable. `registers`: the decoded ones of the `apply`.
   * @throws WriteRefused FULL: the journal refused the records, and they never take effect
   */
  async commit(records: readonly JournalRecord[], registers: readonly Register[] = []): Promise<void> {
    this.#journaling.add(records);
    this.#accept(records);
    try {
      await this.#ports.db.append(records);
    } catch (cause) {
      this.#withdraw(records);
      throw new WriteRefused("FULL", undefined, { cause });
    }
    this.#ports.alarms.clear("STORAGE_FULL", "journal");
    await this.inTurn(() => this.#apply(records, registers)).finally(() => this.#journaling.delete(records));
  }

  #accept(records: readonly JournalRecord[]): void {
    for (const record of records) if (record.t === "apply") raise(this.#accepted, record.upto);
  }

  #withdraw(records: readonly JournalRecord[]): void {
    this.#journaling.delete(records);
    const text = "the journal cannot be written; this controller is read-only";
    this.#ports.alarms.raise("STORAGE_FULL", "journal", text);
    // Computed again without the refused records, so that transactions which depend on them are pulled again.
    this.#accepted.clear();
    raise(this.#accepted, this.#state.map.vector);
    for (const others of this.#journaling) this.#accept(others);
  }

  /**
   * Does work in the order of the calls, between durable records and never within a merge: a large merge takes several turns of the event
   * loop. So a write has seen all of a merge or nothing, and overtakes no durable record; a page contains all of a merge or nothing.
   */
  inTurn<Value>(work: () => Value | Promise<Value>): Promise<Value> {
    const done = this.#line.then(work);
    this.#line = done.catch(() => undefined);
    return done;
  }

  async #apply(records: readonly JournalRecord[], registers: readonly Register[]): Promise<void> {
    const { slice, nextTurn } = this.#ports;
    const last = records.at(-1);
    if (last?.t !== "apply" || last.from !== undefined || registers.length <= slice) {
      for (const record of records)
        if (record.t !== "part") this.#notify(this.#state.apply(record, record.t === "apply" ? registers : undefined));
    } else {
      this.#state.beginMerge(last, registers);
      this.#notify(this.#state.mergeNext(slice));
      while (this.#state.isMerging) {
        await nextTurn();
        this.#notify(this.#state.mergeNext(slice));
      }
    }
  }

  #notify(changed: readonly string[]): void {
    raise(this.#accepted, this.#state.map.vector);
    if (changed.length > 0) for (const listener of this.#listeners) listener(changed);
  }

  /** Calls `listener` with the keys after each durable change, local or remote; the result unsubscribes. */
  watch(listener: (keys: readonly string[]) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * The field `soon`, which accompanies every version vector that is an acknowledgement (messages.ts): transactions that are being
   * journaled, and salvaged ones, which are merged at the end of catching up. A peer that lacks them forgets no deletion.
   */
  underway(): Underway {
    const { map, salvaged } = this.#state;
    const vector = new Map(this.#accepted);
    raise(
      vector,
      salvaged.map(({ o, s }) => [o, s] as const),
    );
    const entries = [...vector].filter(([origin, seq]) => !covers(map.vector, origin, seq));
    return entries.length > 0 ? { soon: entries } : {};
  }

  /** The digest for peers; absent during a merge, because it would not match the version vector. */
  digest(): { readonly digest?: string } {
    return this.#state.isMerging ? {} : { digest: this.#state.map.digest.total() };
  }
}

/**
 * Lets work go on for which no caller waits. A full disk may end it, since the next pull begins it again; any other error ends the
 * process.
 */
export function inBackground(work: Promise<unknown>): void {
  work.catch((error: unknown) => {
    if (!(error instanceof WriteRefused)) throw error;
  });
}
