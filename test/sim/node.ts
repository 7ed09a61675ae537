import { createReplica, type Replica } from "#controller/replica/create-replica.ts";
import { ClusterState } from "#controller/replica/cluster-state.ts";
import type { DialTarget, JournalRecord, KeyRules } from "#controller/replica/replica-ports.ts";
import type { ReplicaOptions } from "#controller/replica/replica.ts";
import type { VersionVector } from "#crdt/version-vector.ts";
import { SimDisk } from "./disk.ts";
import type { SimProcess, SimNetwork } from "./network.ts";
import type { Operator } from "./operator.ts";
import type { Random } from "#support/random.ts";
import type { Scheduler } from "./scheduler.ts";
import type { Swarm } from "./swarm.ts";

export const cluster = "sim";
/** The beginning of virtual time, on every right wall clock. */
export const epoch = 1_700_000_000_000;

/** The parts of the world that a node uses. */
export interface NodeWorld {
  readonly scheduler: Scheduler;
  readonly network: SimNetwork;
  readonly random: Random;
  readonly swarm: Swarm;
  readonly find: (id: string) => SimProcess | undefined;
}

type NodeOptions = Pick<ReplicaOptions, "start"> & Partial<ReplicaOptions> & KeyRules;

/** One controller: a disk that stays, and processes that come and go. */
export class SimNode implements SimProcess {
  readonly id: string;
  readonly disk: SimDisk;
  readonly #world: NodeWorld;
  readonly #options: NodeOptions;
  join: readonly string[];
  replica: Replica | undefined;
  /** The state that the replica serves. */
  state: ClusterState | undefined;
  operator: Operator | undefined;
  onBoot: (replica: Replica) => void = () => undefined;
  #process: object | undefined;
  accept: SimProcess["accept"];
  /** Milliseconds by which the wall clock is ahead. */
  offset = 0;
  isLost = false;
  isPaused = false;
  lineage = 0;
  #held: (() => void)[] = [];
  #bootedAt = 0;
  /** Whether the present process found that a peer holds another state; the alarm of that ends with the exchange. */
  hasDiverged = false;
  /** The version vector of its state when `readDurableVector` was last called. */
  durableVector: VersionVector = new Map();
  backup:
    | {
        readonly at: number;
        readonly records: readonly JournalRecord[];
        readonly vector: VersionVector;
        /** The members in the backup. */
        readonly members: readonly string[];
      }
    | undefined;

  constructor(world: NodeWorld, id: string, options: NodeOptions) {
    this.id = id;
    this.#world = world;
    this.#options = options;
    this.join = options.join ?? [];
    this.disk = new SimDisk(world.scheduler, world.random, world.swarm);
  }

  wall(): number {
    const { scheduler, swarm } = this.#world;
    return Math.floor((epoch + scheduler.now + this.offset) / swarm.grain) * swarm.grain;
  }

  boot(): void {
    if (this.replica || this.isLost) return;
    const { scheduler, network, random, find } = this.#world;
    this.#bootedAt = scheduler.now;
    this.hasDiverged = false;
    const process = {};
    this.#process = process;
    const inProcess = (run: () => void) => () =>
      this.deliver(() => {
        if (this.#process === process) run();
      });
    this.state = new ClusterState(this.#options, this.disk.durable);
    const replica = createReplica({
      id: this.id,
      cluster,
      clock: { wall: () => this.wall(), mono: () => scheduler.now - this.#bootedAt },
      rng: () => random.next(),
      timers: scheduler.timers(inProcess),
      net: {
        dial: (target, timeoutMs) =>
          network.dial(this, find(nameOf(target)), timeoutMs, () => replica.dialFailed(target)),
      },
      db: { data: this.state, append: (records) => this.disk.append(records) },
      log: (_level, _message, { alarm }) => {
        if (alarm === "STATE_DIVERGENCE") this.hasDiverged = true;
      },
      ...this.#options,
      join: this.join,
    });
    this.replica = replica;
    this.onBoot(replica);
    this.accept = (link) => replica.connected(link);
  }

  readDurableVector(): void {
    if (this.replica) this.durableVector = new Map(Object.entries(this.replica.status().vv));
  }

  /** The machine loses its power. */
  crash(): void {
    if (!this.replica) return;
    this.kill();
    this.disk.crash();
  }

  kill(): void {
    this.readDurableVector();
    this.#process = undefined;
    this.replica = undefined;
    this.state = undefined;
    this.operator = undefined;
    this.accept = undefined;
    this.isPaused = false;
    this.#held = [];
  }

  deliver(run: () => void): void {
    if (this.isPaused) this.#held.push(run);
    else run();
  }

  pause(ms: number): void {
    if (!this.replica || this.isPaused) return;
    this.isPaused = true;
    const process = this.#process;
    this.#world.scheduler.after(ms, () => {
      if (this.#process === process) this.resume();
    });
  }

  resume(): void {
    this.isPaused = false;
    for (const run of this.#held.splice(0)) this.deliver(run);
  }
}

function nameOf(target: DialTarget): string {
  return "id" in target ? target.id : target.address;
}
