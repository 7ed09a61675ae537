import type { LogFields } from "#api/log.ts";
import { manageControllers } from "#controller/cluster/controllers.ts";
import type { Certificates } from "#controller/cluster/certificates.ts";
import { watchNodeLives } from "#controller/cluster/node-lives.ts";
import { manageNodes, type NodesOptions } from "#controller/cluster/nodes.ts";
import { openRecords } from "#controller/cluster/records.ts";
import { Refused } from "#controller/cluster/refused.ts";
import { keyRules } from "#controller/cluster/registers.ts";
import { ClusterState } from "#controller/replica/cluster-state.ts";
import { createReplica, type Replica } from "#controller/replica/create-replica.ts";
import { WriteRefused } from "#controller/replica/replica.ts";
import { controllerOf } from "#controller/replica/registered-controllers.ts";
import type { JournalRecord } from "#controller/replica/replica-ports.ts";
import type { BundleStore } from "#controller/updates/bundles.ts";
import { inputOf, presentHash } from "#controller/updates/known-input.ts";
import {
  indexUpdates,
  nextEpoch,
  targetOf,
  type UpdateIndex,
  type UpdateRecords,
} from "#controller/updates/update-records.ts";
import { manageUpdates, type ClusterUpdates, type UpdatesParts } from "#controller/updates/updates.ts";
import { PageReader } from "#crdt/page.ts";
import { fenceOf, type Order } from "#rollout/order.ts";
import type { Owner, RolloutProgress, RequestAction } from "#rollout/records.ts";
import type { SignedStatement } from "#rollout/spec.ts";
import type { RolloutInput } from "#rollout/rollout-input.ts";
import type { SimProcess } from "../network.ts";
import { endpointOf } from "./client.ts";
import { RolloutDisk } from "./disk.ts";
import { handleRequests, type Answer, type Request } from "./requests.ts";
import { bundleOf, cluster, epochMs } from "./targets.ts";
import type { RolloutWorld } from "./world.ts";

export const names = ["u", "v"] as const;
/** Milliseconds for which a node stays ready after its last heartbeat. */
export const staleAfter = 90_000;

export type Changes = readonly (readonly [string, unknown])[];

/** A controller's records of one update. */
export interface HeldRecords extends Pick<UpdateRecords, "rows" | "reports" | "answers" | "requests"> {
  readonly head: { readonly generation: number; readonly target: string } | undefined;
  readonly owner: Owner | undefined;
  readonly progress: RolloutProgress | undefined;
}

const noRecords: HeldRecords = {
  head: undefined,
  owner: undefined,
  progress: undefined,
  rows: new Map(),
  reports: new Map(),
  answers: new Map(),
  requests: {},
};
const cachedRecords = new WeakMap<UpdateRecords, HeldRecords>();

function recordsOf(update: UpdateRecords | undefined): HeldRecords {
  if (!update) return noRecords;
  let known = cachedRecords.get(update);
  if (!known) {
    const { head, statement, progress, ...rest } = update;
    const { generation } = head.value;
    known = { ...rest, head: { generation, target: targetOf(statement).id }, progress: progress?.value };
    cachedRecords.set(update, known);
  }
  return known;
}

const certificates = {
  isRevoked: () => false,
  isOfNode: () => true,
  changesToSupersede: () => [],
} as unknown as Certificates;

/** The process of a controller: the product's own, around one replica. */
interface Process {
  readonly replica: Replica;
  readonly index: UpdateIndex;
  readonly updates: ClusterUpdates;
  readonly parts: UpdatesParts;
  readonly handle: (request: Request) => unknown;
}

/** A controller: the product's own code on a simulated clock, timers, network and disk. The disk outlives each process. */
export class SimController implements SimProcess {
  readonly id: string;
  readonly disk: RolloutDisk;
  readonly lineage = 0;
  readonly #world: RolloutWorld;
  accept: SimProcess["accept"];
  isUp = false;
  /** Milliseconds by which the controller's wall clock is ahead of the simulated time. */
  offset = 0;
  #boot = 0;
  #bootedAt = 0;
  /** The running process, or the last one while the controller is down. */
  #process: Process | undefined;
  readonly #pages = new PageReader();

  constructor(world: RolloutWorld, id: string) {
    this.id = id;
    this.#world = world;
    this.disk = new RolloutDisk(world.scheduler, world.random);
    this.disk.onDurable = (records) => this.#durable(records);
    this.disk.onDeath = () => this.kill();
  }

  get wall(): number {
    return Math.floor(epochMs + this.#world.scheduler.now + this.offset);
  }

  get isReadOnly(): boolean {
    return this.#process?.replica.status().readOnly !== undefined;
  }

  of(name: string): HeldRecords {
    return recordsOf(this.#process?.index.read(name));
  }

  keysOf(name: string): readonly string[] {
    return Array.from(this.#process?.replica.entries(`update/${name}/`) ?? [], ([key]) => key);
  }

  /** The controller's records of all updates, as one text. */
  text(): string {
    const all = [...(this.#process?.replica.entries("update/") ?? [])];
    return all.map(([key, { text, o, s }]) => `${key} ${o} ${s} ${text}`).join("\n");
  }

  value(key: string): unknown {
    return JSON.parse(this.#process?.replica.get(key)?.text ?? "null");
  }

  start(): void {
    if (this.isUp) return;
    this.isUp = true;
    this.#bootedAt = this.#world.scheduler.now;
    this.#process = this.#begin(++this.#boot);
  }

  deliver(run: () => void): void {
    if (this.isUp) run();
  }

  /** kill -9, or a loss of power. */
  kill(): void {
    this.isUp = false;
    this.#boot++;
    this.accept = undefined;
    this.disk.crash();
  }

  #begin(boot: number): Process {
    const { scheduler, random, network, swarm } = this.#world;
    const inProcess = (run: () => void) => (): void => {
      if (this.#boot === boot) run();
    };
    const mono = (): number => scheduler.now - this.#bootedAt;
    const clock = (): number => this.wall;
    const timers = scheduler.timers(inProcess);
    const own = createReplica({
      id: this.id,
      cluster,
      clock: { wall: clock, mono },
      rng: () => random.next(),
      timers,
      // Pings over idle links are most of the simulator's work; the simulator of replication has the usual interval.
      tuning: { pingEvery: 5_000, conflictsEvery: 10_000 },
      net: {
        dial: (target, timeoutMs) => {
          const to = "id" in target ? target.id : target.address;
          network.links.dial(
            this,
            this.#world.controllers.find(({ id }) => id === to),
            timeoutMs,
            inProcess(() => own.dialFailed(target)),
          );
        },
      },
      db: {
        data: new ClusterState(keyRules, this.disk.records),
        append: (records) => (this.#boot === boot ? this.disk.append(records) : never),
      },
      start: "found",
    });
    const replica: Replica = {
      ...own,
      // Decisions read the status several times in one event.
      status: this.#oncePerEvent(() => own.status()),
      write: (changes) => {
        this.#world.checks.writing(this, changes);
        return own.write(changes);
      },
    };
    replica.watch((changed) => {
      if (this.#boot === boot) for (const key of changed) this.#world.checks.changed(this, key);
    });
    this.accept = (link) => replica.connected(link);
    const records = openRecords(replica);
    const liveness = watchNodeLives({
      replica,
      controllerId: this.id,
      staleAfterMs: staleAfter,
      clock,
      monotonic: mono,
    });
    const controllers = manageControllers({
      records,
      certificates,
      controllerId: this.id,
      dc: "",
      version: "",
      requireManualApproval: false,
      address: () => this.id,
      own: () => ({ cert: "", notAfter: new Date(0) }),
      subCa: () => undefined,
      clock,
      lastContact: () => 0,
    });
    const index = indexUpdates(records);
    const parts: UpdatesParts = {
      verify: ({ statement }) => JSON.parse(statement) as unknown,
      index,
      bundles: { list: () => Promise.resolve([{ ...bundleOf(""), held: 1, whole: true }]) } as unknown as BundleStore,
      credentials: () => {
        throw new Error("nothing is fetched here");
      },
      random: () => random.next(),
      ...(swarm.removes && { kept: { updates: 0, ms: 0 } }),
      monotonic: mono,
      timers,
      controllerId: this.id,
      records,
      liveness,
      controllers,
      names: { find: (id) => id },
      members: controllers.ids,
      endpointOf,
      isHeard: (id) => controllers.peers().some((peer) => peer.controllerId === id && peer.state === "connected"),
      audit: { record: () => undefined },
      log: { info: () => undefined, warn: this.#warn, error: this.#warn },
      clock,
    };
    const updates = manageUpdates(parts);
    const nodes = manageNodes({
      records,
      certificates,
      rejects: { of: () => [] } as unknown as NodesOptions["rejects"],
      liveness,
      names: {} as NodesOptions["names"],
      controllerId: this.id,
      requiresManualApproval: () => false,
      endpoints: () => [],
      clock,
      monotonic: clock,
    });
    const { log } = parts;
    const handle = handleRequests({ controllerId: this.id, records, nodes, controllers, updates, log, clock });
    return { replica, index, updates, parts, handle };
  }

  #oncePerEvent<Value>(read: () => Value): () => Value {
    const { scheduler } = this.#world;
    let last: { readonly event: number; readonly value: Value } | undefined;
    return () => {
      if (last?.event !== scheduler.executed) last = { event: scheduler.executed, value: read() };
      return last.value;
    };
  }

  #durable(records: readonly JournalRecord[]): ReturnType<RolloutDisk["onDurable"]> {
    for (const record of records) {
      if (record.t !== "apply") continue;
      const own = [...this.#pages.read(record.page)].filter(({ o }) => controllerOf(o) === this.id);
      if (own.length === 0 || record.from !== undefined || record.upto.length !== 1) continue;
      const changes = own.map(({ key, text }) => [key, JSON.parse(text ?? "null") as unknown] as const);
      const fate = this.#world.beforeCommit(this, changes);
      if (fate !== "before") this.#world.checks.committing(this, changes);
      if (fate !== undefined) return fate;
    }
    return undefined;
  }

  /** Runs a request, which the product may refuse. */
  #do(run: (process: Process) => Promise<unknown> | undefined): void {
    if (!this.isUp || !this.#process) return;
    try {
      run(this.#process)?.catch((error: unknown) => this.#noteFault(error));
    } catch (error) {
      this.#noteFault(error);
    }
  }

  /** Notes an error unless it is a refusal: any other error is a fault of the product. */
  #noteFault(error: unknown): void {
    if (error instanceof Refused || error instanceof WriteRefused) return;
    this.#world.note(`${this.id} failed: ${error instanceof Error ? error.stack : String(error)}`);
  }

  /** The product's log of an error. `describeError` gives refusals a code in capitals; an error of the language has none. */
  readonly #warn = (message: string, { error, code }: LogFields = {}): void => {
    const isRefusal = typeof code === "string" && !code.startsWith("ERR_");
    if (error !== undefined && !isRefusal) this.#world.note(`${this.id} logs: ${message}: ${JSON.stringify(error)}`);
  };

  /** Answers a request, unless the process dies first. */
  serve(request: Request, answer: (answer: Answer) => void): void {
    const boot = this.#boot;
    this.#do(async ({ handle }) => {
      let answered: Answer;
      try {
        answered = { reply: await handle(request) };
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        answered = { refused: error };
      }
      if (this.#boot === boot) answer(answered);
    });
  }

  /** The epoch that the bastion would sign, by the records of this controller; undefined without such an update. */
  nextEpoch(name: string): number | undefined {
    const update = this.#process?.index.read(name);
    return update && nextEpoch(update);
  }

  /** An order in this controller's own name, for an epoch that the bastion has not signed; undefined without records for it. */
  forge(name: string, node: string): Order | undefined {
    const { head, owner, rows } = this.#process?.index.read(name) ?? {};
    const row = rows?.get(node);
    if (!head || !owner?.signed || !row) return undefined;
    const fence = { ...fenceOf(name, row), epoch: owner.epoch + 1, owner: this.id };
    return { fence, step: "fence", signed: head.value.signed, ownership: owner.signed };
  }

  takeOver(name: string, ownership: SignedStatement): void {
    this.#do(({ updates }) => updates.takeOver(name, { ownership }, "operator"));
  }

  approve(name: string): void {
    this.#do(({ updates, parts, index }) => {
      const update = index.read(name);
      if (!update) return undefined;
      const { generation } = update.head.value;
      return updates.approve(
        name,
        { generation, hash: presentHash(update, inputOf(parts, update).nodeIds) },
        "operator",
      );
    });
  }

  remove(name: string): void {
    this.#do(({ updates }) => updates.remove(name, "operator"));
  }

  /** Writes an operator's request, and returns the generation that it is for. */
  request(name: string, action: RequestAction, more: { readonly now?: boolean } = {}): number | undefined {
    const generation = this.of(name).head?.generation;
    this.#do(({ updates }) => updates.request(name, action, more, "operator"));
    return generation;
  }

  /** The state of an update, by the records of this controller. */
  inputOf(name: string): RolloutInput | undefined {
    const { index, parts } = this.#process ?? {};
    const update = index?.read(name);
    return update && parts && inputOf({ ...parts, clock: () => this.wall }, update);
  }
}

const never = new Promise<void>(() => undefined);
