// “Convergent” (docs/replication.md): the parts of a replica, and their access to each other.
import type { Dot } from "#crdt/register.ts";
import { Alarms } from "./alarms.ts";
import { ClockGuard } from "./clock-guard.ts";
import { CommitQueue, inBackground } from "./commit-queue.ts";
import { DuplicateIdentity } from "./duplicate-identity.ts";
import { FutureStamps } from "./future-stamps.ts";
import { OriginGeneration } from "./origin-generation.ts";
import { Peer } from "./peer.ts";
import type { ReplicaOptions } from "./replica.ts";
import { Refusals } from "./refusals.ts";
import { concernsMembers, controllerOf, registeredIn } from "./registered-controllers.ts";
import type { ClusterState } from "./cluster-state.ts";
import { defaultTuning, type Tuning } from "./tuning.ts";

/** The parts of a replica, the members, and the conditions that concern all parts. */
export class Core {
  readonly options: ReplicaOptions;
  readonly tuning: Tuning;
  readonly state: ClusterState;
  readonly alarms: Alarms;
  /** The one way to change the state. */
  readonly commits: CommitQueue;
  readonly guard: ClockGuard;
  readonly futureStamps: FutureStamps;
  readonly refusals: Refusals;
  readonly duplicates: DuplicateIdentity;
  readonly generation: OriginGeneration;
  readonly #peers = new Map<string, Peer>();
  #fullExchange: object | undefined;
  #isStopped = false;
  #isAsking: boolean;
  #hasHeard: boolean;
  /** Origins with two contents under one seq. */
  readonly #equivocal = new Set<string>();
  #members: readonly string[];

  constructor(options: ReplicaOptions) {
    // Stamps are whole milliseconds; the clock may give fractions.
    this.options = { ...options, clock: { ...options.clock, wall: () => Math.floor(options.clock.wall()) } };
    this.tuning = { ...defaultTuning, ...options.tuning };
    this.state = options.db.data;
    this.guard = new ClockGuard(this.options.clock, this.tuning);
    this.alarms = new Alarms(this.options.clock.wall, ({ code, about, message }) =>
      options.log?.("warn", message, { alarm: code, about }),
    );
    this.futureStamps = new FutureStamps(this.options.clock, this.tuning, this.alarms);
    this.commits = new CommitQueue({
      db: options.db,
      alarms: this.alarms,
      slice: this.tuning.slice,
      nextTurn: () => this.nextTurn(),
    });
    this.refusals = new Refusals(this);
    this.duplicates = new DuplicateIdentity(this);
    this.generation = new OriginGeneration(this);
    this.#members = registeredIn(this.state.map);
    this.commits.watch((changed) => {
      if (concernsMembers(changed)) this.#members = registeredIn(this.state.map);
    });
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
    // Each write asks this several times.
    const { others } = this;
    return others.length > 0 && this.state.map.vector.keys().some((origin) => others.includes(controllerOf(origin)));
  }

  /**
   * Whether a member has let this controller in since the start. True from the start if no other member ever wrote, or if an
   * operator said that no other one is left (`isAlone`).
   */
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
    if (this.state.isAlone) inBackground(this.commits.commit([{ t: "meta", alone: false }]));
  }

  get peers(): ReadonlyMap<string, Peer> {
    return this.#peers;
  }

  peerOf(id: string): Peer {
    let peer = this.#peers.get(id);
    if (!peer) this.#peers.set(id, (peer = new Peer(id, { cap: this.tuning.backOffCap, random: this.options.rng })));
    return peer;
  }

  /**
   * Whether the state of a peer counts as complete. A peer that reports itself unready (joining, or behind after a restore)
   * may lack deletions that others forgot. Such a peer counts only if this replica is behind and all others are connected and unready.
   */
  isSource({ isReady }: Peer): boolean {
    if (isReady !== false) return true;
    const connected = this.others.map((id) => this.peers.get(id)).filter((peer) => peer?.stream?.isOpen);
    return (
      this.state.isBehind &&
      connected.length === this.others.length &&
      connected.every((peer) => peer?.isReady === false)
    );
  }

  /** Two contents under one seq show that two processes write under one origin: this process refuses that origin from now on. */
  reportEquivocation({ o, s }: Dot): void {
    this.#equivocal.add(o);
    const why = "a clone, or a backup that was restored";
    this.alarms.raise("EQUIVOCATION", o, `${o} wrote its transaction ${s} twice, with different content: ${why}`);
    if (o === this.generation.origin) this.generation.dispute();
  }

  isEquivocal(origin: string): boolean {
    return this.#equivocal.has(origin);
  }

  /** A random name of 16 hex digits for a process, a store or an origin; from `rng`, so that a simulation repeats it. */
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

  /** Resolves after `ms`; never once the replica has stopped. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.after(ms, resolve));
  }

  /** Resolves in the next turn of the event loop; never once the replica has stopped. */
  nextTurn(): Promise<void> {
    return new Promise((resolve) =>
      this.options.timers.soon(() => {
        if (!this.isStopped) resolve();
      }),
    );
  }

  /** Repeats `run` with ±20 % jitter, so that replicas do not act in step. */
  every(ms: number, run: () => void): void {
    this.after(ms * (0.8 + 0.4 * this.options.rng()), () => {
      run();
      this.every(ms, run);
    });
  }
}
