// “Durable” (docs/replication.md): each change is journaled first; only then it counts here, and goes to peers.
import type { Dot, Register } from "#crdt/register.ts";
import { covers, raise } from "#crdt/version-vector.ts";
import { Alarms } from "./alarms.ts";
import { ClockGuard } from "./clock-guard.ts";
import { DuplicateIdentity } from "./duplicate-identity.ts";
import type { Soon } from "./messages.ts";
import { OriginGeneration } from "./origin-generation.ts";
import { Peer } from "./peer.ts";
import type { JournalRecord } from "./replica-ports.ts";
import type { ReplicaOptions } from "./replica.ts";
import { Refusals } from "./refusals.ts";
import { concernsMembers, controllerOf, membersOf } from "./registered-controllers.ts";
import type { ClusterState } from "./cluster-state.ts";
import { defaultTuning, type Tuning } from "./tuning.ts";

/** The shared centre of a replica: its state, its peers, and the one way to change the state durably. */
export class Core {
  readonly options: ReplicaOptions;
  readonly tuning: Tuning;
  readonly state: ClusterState;
  readonly alarms: Alarms;
  readonly guard: ClockGuard;
  readonly refusals: Refusals;
  readonly duplicates: DuplicateIdentity;
  readonly generation: OriginGeneration;
  readonly peers = new Map<string, Peer>();
  /** The version vector as it will be when everything that is being journaled is applied. */
  readonly accepted = new Map<string, number>();
  #fullExchange: object | undefined;
  #isStopped = false;
  #isAsking: boolean;
  #hasHeard: boolean;
  /** Origins with two contents under one seq. */
  readonly #equivocal = new Set<string>();
  /** Records that are being journaled, or are durable and wait to be applied. */
  readonly #journaling = new Set<readonly JournalRecord[]>();
  readonly #turns: (() => void)[] = [];
  #members: readonly string[] = [];
  readonly #listeners = new Set<(keys: readonly string[]) => void>();

  constructor(options: ReplicaOptions) {
    // Stamps are whole milliseconds; the clock may give fractions.
    this.options = { ...options, clock: { ...options.clock, wall: () => Math.floor(options.clock.wall()) } };
    this.tuning = { ...defaultTuning, ...options.tuning };
    this.state = options.db.data;
    this.guard = new ClockGuard(this.options.clock, this.tuning);
    this.alarms = new Alarms(this.options.clock.wall, ({ code, about, message }) =>
      options.log?.("warn", message, { alarm: code, about }),
    );
    this.refusals = new Refusals(this);
    this.duplicates = new DuplicateIdentity(this);
    this.generation = new OriginGeneration(this);
    raise(this.accepted, this.state.map.vector);
    this.#members = membersOf(this.state.map);
    this.#isAsking = this.others.length > 0;
    this.#hasHeard = this.state.isAlone || !this.hasCompany;
  }

  /** The registered controllers, this one included once it is registered. */
  get members(): readonly string[] {
    return this.#members;
  }

  get others(): readonly string[] {
    return this.#members.filter((id) => id !== this.options.id);
  }

  /**
   * Whether another member ever wrote, as each member does when it first runs. A member that never ran cannot let this
   * controller in.
   */
  get hasCompany(): boolean {
    const writers = new Set(Array.from(this.state.map.vector.keys(), controllerOf));
    return this.others.some((id) => writers.has(id));
  }

  /** A member has let this controller in since the start, no other member ever wrote, or an operator said that none is left. */
  get hasHeard(): boolean {
    return this.#hasHeard;
  }

  /** Whether this controller has just started and still asks the others for missed changes: its state may be old. */
  get isAsking(): boolean {
    return this.#isAsking;
  }

  endAsking(): void {
    this.#isAsking = false;
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** Makes all timers of the replica ineffective. */
  stop(): void {
    this.#isStopped = true;
  }

  /** The puller that carries a full exchange out: nothing else may change the state meanwhile. */
  get fullExchange(): object | undefined {
    return this.#fullExchange;
  }

  /** Begins a full exchange; false if another puller carries one out. */
  beginFullExchange(puller: object): boolean {
    if (this.#fullExchange) return false;
    this.#fullExchange = puller;
    return true;
  }

  endFullExchange(puller: object): void {
    if (this.#fullExchange === puller) this.#fullExchange = undefined;
  }

  /** Called when a member lets this controller in: its writes reach a member from now on. */
  heard(): void {
    this.#hasHeard = true;
    if (this.state.isAlone) this.commit([{ t: "meta", alone: false }]);
  }

  peerOf(id: string): Peer {
    let peer = this.peers.get(id);
    if (!peer) this.peers.set(id, (peer = new Peer(id, { cap: this.tuning.backOffCap, random: this.options.rng })));
    return peer;
  }

  /** Journals records as one, applies them once durable, then calls `onApplied`. `registers`: the decoded ones of the `apply`. */
  commit(
    records: readonly JournalRecord[],
    registers: readonly Register[] = [],
    onApplied: () => void = ignore,
    onFailed: (error: unknown) => void = ignore,
  ): void {
    this.#journaling.add(records);
    this.#accept(records);
    this.options.db.append(records).then(
      () => {
        this.alarms.clear("STORAGE_FULL", "journal");
        this.#inTurn(() =>
          this.#applyAll(records, registers, () => {
            this.#journaling.delete(records);
            onApplied();
          }),
        );
      },
      (error: unknown) => {
        this.#journaling.delete(records);
        this.alarms.raise("STORAGE_FULL", "journal", "the journal cannot be written; this controller is read-only");
        // Recomputed without the failed records, so that transactions which depend on them are pulled again.
        this.accepted.clear();
        raise(this.accepted, this.state.map.vector);
        for (const others of this.#journaling) this.#accept(others);
        onFailed(error);
      },
    );
  }

  #accept(records: readonly JournalRecord[]): void {
    for (const record of records) if (record.t === "apply") raise(this.accepted, record.upto);
  }

  /** The number of appends that are not applied yet. */
  get inFlight(): number {
    return this.#journaling.size;
  }

  /**
   * The field `soon`, which accompanies every version vector that is an acknowledgement (messages.ts): transactions that are being
   * journaled, and salvaged ones, which are merged at the end of catching up. A peer that lacks them forgets no deletion.
   */
  underway(): Soon {
    const soon = new Map(this.accepted);
    raise(
      soon,
      this.state.salvaged.map(({ o, s }) => [o, s] as const),
    );
    const entries = [...soon].filter(([origin, seq]) => !covers(this.state.map.vector, origin, seq));
    return entries.length > 0 ? { soon: entries } : {};
  }

  /**
   * Applies durable records in order. A large merge takes several turns of the event loop. Records and writes that come meanwhile wait
   * behind it, since no write may overtake a durable record.
   */
  #inTurn(run: () => void): void {
    if (this.state.isMerging || this.#turns.length > 0) this.#turns.push(run);
    else run();
  }

  /** The digest for peers; absent during a merge, because it would not match the version vector. */
  digest(): { readonly digest?: string } {
    return this.state.isMerging ? {} : { digest: this.state.map.digest.total() };
  }

  /** Calls `run` when no merge is incomplete: a write must have seen all of a merge or nothing, and a page must contain all or nothing. */
  whenSettled(run: () => void): void {
    this.#inTurn(run);
  }

  #applyAll(records: readonly JournalRecord[], registers: readonly Register[], onApplied: () => void): void {
    const { slice } = this.tuning;
    const last = records.at(-1);
    if (last?.t !== "apply" || last.from !== undefined || registers.length <= slice) {
      for (const record of records)
        if (record.t !== "part") this.#notify(this.state.apply(record, record.t === "apply" ? registers : undefined));
      return onApplied();
    }
    this.state.beginMerge(last, registers);
    const mergeNext = (): void => {
      this.#notify(this.state.mergeNext(slice));
      if (this.state.isMerging) return this.soon(mergeNext);
      onApplied();
      while (this.#turns.length > 0 && !this.state.isMerging) this.#turns.shift()?.();
    };
    mergeNext();
  }

  #notify(changed: readonly string[]): void {
    raise(this.accepted, this.state.map.vector);
    if (changed.length === 0) return;
    if (concernsMembers(changed)) this.#members = membersOf(this.state.map);
    for (const listener of this.#listeners) listener(changed);
  }

  /**
   * Whether the state of a peer may be taken as complete. A peer that is joining, or was restored and has not caught up, may
   * lack deletions that others forgot. If all members were restored, any peer will do.
   */
  isSource({ isReady }: Peer): boolean {
    if (isReady !== false) return true;
    const said = this.others.map((id) => this.peers.get(id)).filter((peer) => peer?.stream?.isOpen);
    return this.state.isBehind && said.length === this.others.length && said.every((peer) => peer?.isReady === false);
  }

  /** Two contents under one seq show that two processes write under one origin: peers refuse that origin for good. */
  reportEquivocation({ o, s }: Dot): void {
    this.#equivocal.add(o);
    const why = "a clone, or a backup that was restored";
    this.alarms.raise("EQUIVOCATION", o, `${o} wrote its transaction ${s} twice, with different content: ${why}`);
    if (o === this.generation.origin) this.generation.dispute();
  }

  isEquivocal(origin: string): boolean {
    return this.#equivocal.has(origin);
  }

  watch(listener: (keys: readonly string[]) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** A random name of 16 hex digits. */
  randomName(): string {
    const word = (): string =>
      Math.floor(this.options.rng() * 0x100000000)
        .toString(16)
        .padStart(8, "0");
    return word() + word();
  }

  /** A timer that stops with the replica. */
  after(ms: number, run: () => void): () => void {
    return this.options.timers.after(ms, () => {
      if (!this.isStopped) run();
    });
  }

  soon(run: () => void): void {
    this.options.timers.soon(() => {
      if (!this.isStopped) run();
    });
  }

  /** Repeats `run` with ±20 % jitter, so that replicas do not act in step. */
  every(ms: number, run: () => void): void {
    this.after(ms * (0.8 + 0.4 * this.options.rng()), () => {
      run();
      this.every(ms, run);
    });
  }
}

function ignore(): void {}
