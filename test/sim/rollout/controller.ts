import type { LogFields } from "#api/log.ts";
import type { UpdateView } from "#api/update-schemas.ts";
import { manageControllers } from "#controller/cluster/controllers.ts";
import type { Certificates } from "#controller/cluster/certificates.ts";
import { watchLiveness, type Liveness } from "#controller/cluster/node-lives.ts";
import { readRecords, type Records, type Wish } from "#controller/cluster/records.ts";
import { Refused } from "#controller/cluster/refused.ts";
import { isContested, isKnown, isSecret, keys, mergeKindOf, type Registered } from "#controller/cluster/registers.ts";
import { createReplica } from "#controller/replica/create-replica.ts";
import { WriteRefused, type Replica } from "#controller/replica/replica.ts";
import { controllerOf } from "#controller/replica/registered-controllers.ts";
import type { JournalRecord } from "#controller/replica/replica-ports.ts";
import { watchMajority, type Majority } from "#controller/updates/majority.ts";
import { presentHash, viewOf } from "#controller/updates/owner-loop.ts";
import { knowNodes } from "#controller/updates/rollout-nodes.ts";
import { indexUpdates, targetOf, type UpdateIndex, type UpdateRecords } from "#controller/updates/update-records.ts";
import { manageUpdates, type Updates, type UpdatesParts } from "#controller/updates/updates.ts";
import { PageReader } from "#crdt/page.ts";
import { hasEnded, type HookAnswer, type Owner, type Progress, type Report, type Row } from "#rollout/records.ts";
import type { WishAction } from "#rollout/records.ts";
import type { UpdateSpec } from "#rollout/spec.ts";
import type { RolloutView } from "#rollout/view.ts";
import type { Endpoint } from "../network.ts";
import { RolloutDisk } from "./disk.ts";
import { cluster, epochMs, sign } from "./targets.ts";
import type { RolloutWorld } from "./world.ts";

export const names = ["u", "v"] as const;
/** A node is ready for so long after it was heard last, ms. */
export const staleAfter = 90_000;

export type Changes = readonly (readonly [string, unknown])[];

/** What a controller holds of one update. */
export interface Held {
  readonly head: { readonly generation: number; readonly target: string } | undefined;
  readonly owner: Owner | undefined;
  readonly progress: Progress | undefined;
  readonly rows: ReadonlyMap<string, Row>;
  readonly reports: ReadonlyMap<string, Report>;
  readonly answers: ReadonlyMap<string, HookAnswer>;
  readonly wishes: RolloutView["wishes"];
}

const nothing: Held = {
  head: undefined,
  owner: undefined,
  progress: undefined,
  rows: new Map(),
  reports: new Map(),
  answers: new Map(),
  wishes: {},
};
const held = new WeakMap<UpdateRecords, Held>();

function heldOf(update: UpdateRecords | undefined): Held {
  if (!update) return nothing;
  let known = held.get(update);
  if (!known) {
    const { head, statement, progress, ...rest } = update;
    const { generation } = head.value;
    known = { ...rest, head: { generation, target: targetOf(statement).id }, progress: progress?.value };
    held.set(update, known);
  }
  return known;
}

const certificates = { isRevoked: () => false } as unknown as Certificates;

/** The process of a controller: the product's own, around one replica. */
interface Process {
  readonly replica: Replica;
  readonly records: Records;
  readonly index: UpdateIndex;
  readonly liveness: Liveness;
  readonly majority: Majority;
  readonly updates: Updates;
  readonly parts: UpdatesParts;
}

/** A controller: the product's own code on a simulated clock, timers, network and disk. The disk outlives each process. */
export class SimController implements Endpoint {
  readonly id: string;
  readonly disk: RolloutDisk;
  readonly lineage = 0;
  readonly #world: RolloutWorld;
  accept: Endpoint["accept"];
  isUp = false;
  /** How many ms the controller's wall clock is ahead of the simulated time. */
  offset = 0;
  #boot = 0;
  #bootedAt = 0;
  /** The process that runs, or the one that ran last while the controller is down. */
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

  of(name: string): Held {
    return heldOf(this.#process?.index.read(name));
  }

  /** What it holds of updates, as one text. */
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

  /** kill -9, or its machine has no power. */
  kill(): void {
    this.isUp = false;
    this.#boot++;
    this.accept = undefined;
    this.disk.crash();
  }

  #begin(boot: number): Process {
    const { scheduler, random, network } = this.#world;
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
      // Idle links are most of the work: the simulator of replication has the usual interval.
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
      journal: { append: (records) => (this.#boot === boot ? this.disk.append(records) : never) },
      recovered: this.disk.records,
      start: "found",
      mergeKindOf,
      isContested,
      isKnown,
      isSecret,
    });
    // Decisions ask for it several times at the same instant.
    const replica: Replica = { ...own, status: this.#oncePerEvent(() => own.status()) };
    replica.watch((changed) => {
      if (this.#boot === boot) for (const key of changed) this.#world.checks.changed(this, key);
    });
    this.accept = (link) => replica.connected(link);
    const records = readRecords(replica);
    const liveness = watchLiveness({
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
      certificateExpires: () => new Date(0),
      subCa: () => undefined,
      clock,
      lastContact: () => 0,
    });
    const majority = watchMajority(controllers, mono);
    const index = indexUpdates(records);
    const parts: UpdatesParts = {
      cluster,
      index,
      bundles: { list: () => Promise.resolve([]) } as unknown as UpdatesParts["bundles"],
      credentials: () => {
        throw new Error("nothing is fetched here");
      },
      random: () => random.next(),
      monotonic: mono,
      timers,
      controllerId: this.id,
      records,
      liveness,
      controllers,
      names: { find: (id) => id },
      majority,
      members: controllers.ids,
      rootPem: () => "",
      endpointOf: () => undefined,
      isHeard: () => true,
      audit: { record: () => undefined },
      log: { info: () => undefined, warn: this.#warn, error: this.#warn },
      clock,
    };
    return { replica, records, index, liveness, majority, updates: manageUpdates(parts), parts };
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

  /** What somebody asks of it; what it refuses is not done. */
  #do(run: (process: Process) => Promise<unknown> | undefined): void {
    if (!this.isUp || !this.#process) return;
    try {
      run(this.#process)?.catch((error: unknown) => this.#judge(error));
    } catch (error) {
      this.#judge(error);
    }
  }

  /** The product may refuse what it is asked for. Any other error is a fault of the product. */
  #judge(error: unknown): void {
    if (error instanceof Refused || error instanceof WriteRefused) return;
    this.#world.note(`${this.id} failed: ${error instanceof Error ? error.stack : String(error)}`);
  }

  /** The product's log of an error. `describeError` gives refusals a code in capitals; an error of the language has none. */
  readonly #warn = (message: string, { error, code }: LogFields = {}): void => {
    const isRefusal = typeof code === "string" && !code.startsWith("ERR_");
    if (error !== undefined && !isRefusal) this.#world.note(`${this.id} logs: ${message}: ${JSON.stringify(error)}`);
  };

  /** A node's heartbeat, with its word. */
  exchanged(
    id: string,
    {
      report,
      known,
      version,
    }: { readonly report?: Report; readonly known?: Report["fence"]; readonly version: string },
    answer: (order: Awaited<ReturnType<Updates["exchange"]>>["order"]) => void,
  ): void {
    const boot = this.#boot;
    this.#do(async ({ liveness, records, updates }) => {
      liveness.hear(id);
      const told = records.value("reg", keys.node(id).reg);
      if (told && told.version !== version)
        await records.put([{ key: keys.node(id).reg, value: { ...told, version } }]);
      if (this.#boot !== boot) return;
      if (!updates.concerns(id)) return answer(undefined);
      const said = { nodeId: id, ...(report && { report }), ...(known && { known }) };
      const { order } = await updates.exchange(id, said);
      if (this.#boot === boot) answer(order);
    });
  }

  takeOver(name: string, isForced: boolean): void {
    this.#do(({ updates }) => updates.takeOver(name, { force: isForced }, "operator"));
  }

  approve(name: string): void {
    this.#do(({ updates, parts, index }) => {
      const update = index.read(name);
      if (!update) return undefined;
      const { generation } = update.head.value;
      return updates.approve(name, { generation, hash: presentHash(update, knowNodes(parts)) }, "operator");
    });
  }

  /** The generation that it is asked of. */
  wish(name: string, action: WishAction, more: { readonly now?: boolean } = {}): number | undefined {
    const generation = this.of(name).head?.generation;
    this.#do(({ updates }) => updates.wish(name, action, more, "operator"));
    return generation;
  }

  /** Whether it would take a manifest: as its owner, when the one before is done with. */
  mayApply(name: string): boolean {
    const { owner, progress, head } = this.of(name);
    const isEnded = progress !== undefined && progress.generation === head?.generation && hasEnded(progress.phase);
    const isFree = owner === undefined || (owner.owner === this.id && isEnded);
    return this.isUp && isFree && this.#process?.majority.isHeld() === true;
  }

  apply(name: string, { version, spec }: { readonly version: string; readonly spec: UpdateSpec }): void {
    this.#do(({ records, index }) => {
      const update = index.read(name);
      const generation = (update?.head.value.generation ?? 0) + 1;
      const at = new Date(this.wall).toISOString();
      const of = keys.update(name);
      const value = {
        generation,
        ...sign(name, version, spec, this.#world.scheduler.now),
        createdAt: at,
        updatedAt: at,
        by: "operator",
      };
      const owner: Wish = { key: of.owner, value: { epoch: 1, owner: this.id }, isFree: true };
      return records.write([{ key: of.head, value }, ...(update ? [] : [owner])], update?.head.dot ?? "absent");
    });
  }

  /** Whatever somebody in its place would write. */
  write(changes: Changes): void {
    this.#do(({ records }) => records.write(changes.map(([key, value]) => ({ key, value }))));
  }

  /** How an update stands, by what is known here. */
  viewOf(name: string): RolloutView | undefined {
    const { index, parts } = this.#process ?? {};
    const update = index?.read(name);
    return update && parts && viewOf(update, knowNodes(parts), parts, this.wall);
  }

  /** The update as an operator, or the bastion, gets it to see. */
  updateView(name: string): UpdateView | undefined {
    let view: UpdateView | undefined;
    this.#do(({ updates }) => {
      // Its manifest was read with all that it leaves out.
      view = updates.get(name) as UpdateView;
      return undefined;
    });
    return view;
  }

  /** What the bastion says of a hook; whether it is taken. */
  answer(name: string, said: Parameters<Updates["answerHook"]>[1], ended: (isTaken: boolean) => void): void {
    const boot = this.#boot;
    const end = (isTaken: boolean): void => {
      if (this.#boot === boot) ended(isTaken);
    };
    this.#do(async ({ updates }) => {
      try {
        await updates.answerHook(name, said);
      } catch (error) {
        this.#judge(error);
        return end(false);
      }
      end(true);
    });
  }
}

const never = new Promise<void>(() => undefined);

/** The journal of a controller in the cluster as it begins: its members, and its nodes, all of them approved. */
export async function foundingOf(
  controllers: readonly string[],
  members: readonly { readonly id: string; readonly dc: string; readonly version: string }[],
): Promise<readonly JournalRecord[]> {
  const replica = createReplica({
    id: "founder",
    cluster,
    clock: { wall: () => epochMs, mono: () => 0 },
    rng: () => 0.5,
    timers: { after: () => () => undefined, soon: (run) => run() },
    net: { dial: () => undefined },
    journal: { append: () => Promise.resolve() },
    recovered: [],
    start: "found",
    mergeKindOf,
    isContested,
    isKnown,
    isSecret,
  });
  const at = new Date(epochMs).toISOString();
  const told = { address: "192.0.2.1", roles: [], labels: {}, cpu: 1, memory: 1 };
  const certificate = { key: "k", serial: "01", certificateExpires: at, registeredAt: at };
  await replica.write([
    ...controllers.flatMap((id) => [
      { key: keys.controller(id).auth, value: { spki: id, dc: "", at } },
      { key: keys.controller(id).version, value: { version: "", protocol: 3 } },
    ]),
    ...members.flatMap(({ id, dc, version }) => [
      { key: keys.node(id).reg, value: { hostname: id, dc, version, ...told, ...certificate } satisfies Registered },
      { key: keys.node(id).approval, value: { epoch: 0, state: "approved", by: "operator" } },
    ]),
  ]);
  return [...replica.snapshot()].map((record) => {
    if (record.t !== "meta") return record;
    const { origin: _, storeId: __, ...meta } = record;
    return meta;
  });
}
