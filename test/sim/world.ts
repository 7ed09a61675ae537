import { keys } from "#controller/cluster/registers.ts";
import { newOriginGeneration } from "#controller/replica/origin-generation.ts";
import { authKeyOf } from "#controller/replica/registered-controllers.ts";
import { behindLoss, mergedAtOnce } from "#controller/store/salvage.ts";
import type { JournalRecord } from "#controller/replica/replica-ports.ts";
import { WriteRefused } from "#controller/replica/replica.ts";
import type { Replica } from "#controller/replica/create-replica.ts";
import type { KeyChange, Json } from "#controller/replica/replica.ts";
import type { Dot } from "#crdt/register.ts";
import { History } from "./history.ts";
import { mergeKindOf } from "./kinds.ts";
import { SimNetwork } from "./network.ts";
import { SimNode } from "./node.ts";
import { Operator } from "./operator.ts";
import { Random } from "#support/random.ts";
import { Scheduler } from "./scheduler.ts";
import { drawSwarm } from "./swarm.ts";
import type { Swarm } from "./swarm.ts";
import { Violation } from "./violation.ts";

const joinEvery = 4_000;

/** A cluster of real replicas in a virtual world, with its faults; the seed decides all of it. */
export class World {
  readonly scheduler = new Scheduler();
  readonly history = new History(() => this.nodes);
  readonly swarm: Swarm;
  readonly network: SimNetwork;
  readonly nodes: SimNode[] = [];
  readonly figures = { crashes: 0, partitions: 0, jumps: 0, losses: 0, restores: 0, mends: 0, joins: 0, refused: 0 };
  readonly #random: Random;
  #failure: Error | undefined;
  #isHealed = false;
  #values = 0;

  constructor(seed: number, swarm: Partial<Swarm> = {}) {
    this.#random = new Random(seed);
    this.swarm = { ...drawSwarm(this.#random), ...swarm };
    this.network = new SimNetwork(this.scheduler, this.#random, this.swarm);
    this.network.onSend = (message) => this.#guarded(() => this.history.sent(message));
  }

  find(id: string): SimNode | undefined {
    return this.nodes.find((node) => node.id === id);
  }

  /** Founds the cluster, lets its first members join, and starts the faults. */
  async start(): Promise<void> {
    const founder = this.#add("c0", "found", []);
    await this.#write(founder, registration("c0"));
    for (let index = 1; index < this.swarm.nodes; index++) await this.#join(`c${index}`, founder);
    // No faults yet: they meet the controllers that join later.
    for (let tick = 0; tick < 400 && !this.nodes.every(isReady); tick++) await this.#run(this.scheduler.now + 100);
  }

  #add(id: string, start: "found" | "join", join: readonly string[]): SimNode {
    const { scheduler, network, swarm, history } = this;
    const find = (other: string) => this.find(other);
    const node = new SimNode({ scheduler, network, swarm, random: this.#random, find }, id, {
      start,
      join,
      mergeKindOf,
      tuning: {
        collectEvery: 1_000,
        pullEvery: 5_000,
        conflictsEvery: 1_000,
        page: { registers: swarm.page, bytes: 1 << 20 },
        slice: swarm.slice,
      },
    });
    node.disk.onAppend = (records) => this.#guarded(() => history.appended(node, records));
    node.disk.onDurable = (records) => this.#guarded(() => history.durable(node, records));
    node.onBoot = (replica) => (node.operator = new Operator(replica, this.#random));
    this.nodes.push(node);
    node.boot();
    return node;
  }

  async #join(id: string, sponsor: SimNode): Promise<void> {
    for (let attempt = 0; attempt < 50; attempt++) {
      if (await this.#write(sponsor, registration(id))) break;
      if (attempt === 49) return;
      await this.scheduler.runUntil(this.scheduler.now + 100);
    }
    this.#add(id, "join", [sponsor.id]);
  }

  /** Runs faults and writes for the seed's time. */
  async disturb(): Promise<void> {
    const until = this.scheduler.now + this.swarm.duration;
    const { swarm } = this;
    this.#repeat(swarm.writeEvery, until, () => this.#writeSomething());
    if (swarm.crashes) this.#repeat(6_000, until, () => this.#crash(this.#any()));
    if (swarm.pauses) this.#repeat(20_000, until, () => this.#any().pause(this.#random.between(1_000, 60_000)));
    if (swarm.partitions || swarm.oneWay || swarm.halfOpen) this.#repeat(4_000, until, () => this.#partition());
    if (swarm.jumps) this.#repeat(5_000, until, () => this.#jump(this.#any()));
    if (swarm.fullDisks) this.#repeat(8_000, until, () => this.#fill(this.#any()));
    if (swarm.brokenDisks) this.#repeat(15_000, until, () => this.#crash(this.#any()));
    if (swarm.snapshots) this.#repeat(3_000, until, () => this.#snapshot(this.#any()));
    if (swarm.losses) this.scheduler.after(this.#random.between(5_000, swarm.duration), () => this.#lose());
    if (swarm.restores) {
      this.#repeat(5_000, until, () => this.#backUp(this.#any()));
      this.#repeat(12_000, until, () => this.#restore(this.#any()));
    }
    for (let index = 0; index < swarm.joiners; index++) {
      const at = this.scheduler.now + joinEvery * (index + 1);
      this.scheduler.after(at - this.scheduler.now, () => this.#joinMidway(`j${index}`));
    }
    await this.#run(until);
  }

  #repeat(mean: number, until: number, run: () => void): void {
    const next = (): void => {
      const wait = this.#random.between(0.2, 1.8) * mean;
      if (this.scheduler.now + wait >= until) return;
      this.scheduler.after(wait, () => {
        run();
        next();
      });
    };
    next();
  }

  async #run(until: number): Promise<void> {
    await this.scheduler.runUntil(until);
    if (this.#failure) throw this.#failure;
  }

  #any(): SimNode {
    return this.#random.pick(this.nodes);
  }

  #crash(node: SimNode): void {
    if (node.isLost || !node.replica) return;
    this.figures.crashes++;
    node.crash();
    if (this.swarm.jumps && this.#random.chance(0.3)) node.offset -= this.#random.between(0, 5_000);
    this.scheduler.after(this.#random.between(10, 4_000), () => node.boot());
  }

  #partition(): void {
    const [a, b] = [this.#any(), this.#any()];
    if (a === b) return;
    this.figures.partitions++;
    const kinds = [
      ...(this.swarm.partitions ? ["both"] : []),
      ...(this.swarm.oneWay ? ["dial"] : []),
      ...(this.swarm.halfOpen ? ["half"] : []),
    ];
    const kind = this.#random.pick(kinds);
    // Half of the symmetric partitions cut a controller off from all others.
    const others = kind === "both" && this.#random.chance(0.5) ? this.nodes.filter((node) => node !== a) : [b];
    const list = kind === "dial" ? this.network.undiallable : this.network.blocked;
    const pairs = others.flatMap(({ id }) => [`${a.id}>${id}`, ...(kind === "both" ? [`${id}>${a.id}`] : [])]);
    for (const pair of pairs) list.add(pair);
    this.scheduler.after(this.#random.between(500, 15_000), () => {
      for (const pair of pairs) list.delete(pair);
    });
  }

  #jump(node: SimNode): void {
    this.figures.jumps++;
    // No controller becomes read-only for a small jump.
    const most = this.#random.pick([0, 4_000, 30_000]);
    node.offset = this.#random.between(-most, most);
  }

  #fill(node: SimNode): void {
    node.disk.isFull = true;
    this.scheduler.after(this.#random.between(100, 4_000), () => {
      node.disk.isFull = false;
    });
  }

  #snapshot(node: SimNode): void {
    if (node.state && !node.isPaused && !node.state.isMerging) node.disk.replace(node.state.snapshot());
  }

  #backUp(node: SimNode): void {
    if (node.isLost || !isReady(node)) return;
    node.readDurableVector();
    const members = this.nodes.filter(({ id }) => node.replica?.get(authKeyOf(id))).map(({ id }) => id);
    const at = this.scheduler.now;
    node.backup = { at, records: [...node.disk.durable], vector: node.durableVector, members };
  }

  /**
   * Sets a node's disk back to an earlier state in one of three ways: `kcore controller restore`; a snapshot of the machine, which the controller
   * does not notice, and which docs/replication.md allows only if no controller has joined since; or damage to later records, after which
   * `kcore controller repair` keeps the records behind them.
   */
  #restore(node: SimNode): void {
    const { backup } = node;
    if (!backup || node.isLost) return;
    this.figures.restores++;
    node.crash();
    const isOld = this.nodes.some(({ id }) => !backup.members.includes(id));
    const word = (): string => this.#random.below(0x100000000).toString(16).padStart(8, "0");
    const isMended = this.figures.restores % 3 === 1;
    node.disk.durable = isMended ? this.#damaged(node.disk.durable, backup.records) : [...backup.records];
    if (isMended || isOld || this.figures.restores % 3 === 0)
      node.disk.durable.push(newOriginGeneration(node.id, word));
    node.durableVector = backup.vector;
    node.lineage++;
    this.history.restored(node, backup.records);
    this.#excuse();
    if (this.#random.chance(0.5)) this.#isolate(node, backup.at - this.scheduler.now);
    this.scheduler.after(this.#random.between(10, 2_000), () => node.boot());
  }

  /** The records that a repair keeps if one to three records behind `before` cannot be read. */
  #damaged(records: readonly JournalRecord[], before: readonly JournalRecord[]): JournalRecord[] {
    const isSame = before.every((record, index) => records[index] === record);
    if (!isSame || records.length === before.length) return [...before];
    this.figures.mends++;
    const first = before.length + this.#random.below(records.length - before.length);
    const rest = records.slice(first + 1 + this.#random.below(3));
    return [...records.slice(0, first), ...rest.flatMap((record) => behindLoss(record) ?? [])];
  }

  /** Cuts the node off from all others for a while; its clock continues from the time that it was set back to. */
  #isolate(node: SimNode, offset: number): void {
    node.offset = offset;
    const pairs = this.nodes.flatMap(({ id }) => [`${node.id}>${id}`, `${id}>${node.id}`]);
    for (const pair of pairs) this.network.blocked.add(pair);
    this.scheduler.after(this.#random.between(2_000, 8_000), () => {
      node.offset = 0;
      for (const pair of pairs) this.network.blocked.delete(pair);
    });
  }

  #lose(): void {
    const candidates = this.nodes.filter((node) => !node.isLost && node.id.startsWith("c"));
    if (candidates.length < 3) return;
    const node = this.#random.pick(candidates);
    this.figures.losses++;
    node.crash();
    node.isLost = true;
    node.durableVector = new Map();
    this.#excuse();
  }

  #excuse(): void {
    for (const node of this.nodes) if (node.replica) node.readDurableVector();
    this.history.excuse(this.living);
    this.history.forget(this.living);
  }

  #joinMidway(id: string): void {
    const sponsor = this.#random.pick(this.nodes.filter(({ isLost, replica }) => !isLost && replica?.status().ready));
    if (!sponsor) return;
    this.figures.joins++;
    const write = sponsor.replica?.write(registration(id));
    write?.then(
      (dot) => {
        this.history.acked(dot);
        this.#add(id, "join", [sponsor.id]);
        if (!this.swarm.sponsorCut || this.#isHealed) return;
        // Cuts the sponsor off from all others, so that the new controller reaches only the sponsor's state.
        for (const other of this.nodes)
          if (other.id !== id && other !== sponsor) {
            this.network.blocked.add(`${sponsor.id}>${other.id}`);
            this.network.blocked.add(`${other.id}>${sponsor.id}`);
          }
        this.scheduler.after(this.#random.between(1_000, 15_000), () => this.network.blocked.clear());
      },
      () => {
        if (!this.#isHealed) this.scheduler.after(1_000, () => this.#joinMidway(id));
      },
    );
  }

  #writeSomething(): void {
    const node = this.#any();
    const { replica, operator } = node;
    if (!replica || !operator || node.isPaused) return;
    const die = this.#random.next();
    if (die < 0.08) return this.#await(operator.decide(`n${this.#random.below(2)}`, this.history.decisions));
    if (die < 0.11) return this.#await(operator.resolveConflict());
    const count = this.#random.chance(0.15) ? 2 : 1;
    const changes = new Map<string, KeyChange>();
    for (let index = 0; index < count; index++) {
      const change = this.#draw(replica);
      changes.set(change.key, change);
    }
    this.#submit(replica, [...changes.values()]);
  }

  #draw(replica: Replica): KeyChange {
    const number = this.#random.below(this.swarm.keys);
    const die = this.#random.next();
    // Some values are equal, because equal values are no conflict.
    const value = this.#random.chance(0.1) ? 7 : ++this.#values;
    if (die < 0.12) {
      const key = `approval/${number % 3}`;
      const text = replica.get(key)?.text;
      const { epoch } = text ? (JSON.parse(text) as { epoch: number }) : { epoch: 0 };
      const isNew = this.#random.chance(0.3) || epoch === 0;
      return {
        key,
        value: { epoch: isNew ? epoch + 1 : epoch, state: this.#random.pick(["approved", "rejected"]), value },
      };
    }
    if (die < 0.17) return { key: `grow/${this.#random.below(40)}`, value };
    if (die < 0.2) return { key: `owner/${number % 3}`, value: { epoch: 1 + this.#random.below(5), value } };
    const key = `k/${number}`;
    if (die < 0.45) return { key, value: null };
    if (die < 0.55) return { key, value, ifMatch: replica.get(key) ?? null };
    return { key, value: value as Json };
  }

  #submit(replica: Replica, changes: readonly KeyChange[]): void {
    replica.write(changes).then(
      (dot) => this.#guarded(() => this.history.acked(dot)),
      (error: unknown) => {
        if (error instanceof WriteRefused) this.figures.refused++;
        else this.fail(error as Violation);
      },
    );
  }

  #await(change: Promise<Dot | undefined>): void {
    change.then(
      (dot) => {
        if (dot) this.#guarded(() => this.history.acked(dot));
      },
      (error: unknown) => this.fail(error as Violation),
    );
  }

  #guarded(run: () => void): void {
    try {
      run();
    } catch (error) {
      this.fail(error as Violation);
    }
  }

  fail(error: Error): void {
    this.#failure ??= error;
  }

  async #write(node: SimNode, changes: readonly KeyChange[]): Promise<boolean> {
    let outcome: boolean | undefined;
    node.replica?.write(changes).then(
      (dot) => {
        this.history.acked(dot);
        outcome = true;
      },
      () => (outcome = false),
    );
    const until = this.scheduler.now + 5_000;
    while (outcome === undefined && this.scheduler.now < until) await this.#run(this.scheduler.now + 5);
    return outcome === true;
  }

  /** Ends all faults. The operator then removes controllers that are lost for good. */
  async heal(): Promise<void> {
    this.#isHealed = true;
    this.network.heal();
    for (const node of this.nodes) {
      node.disk.isFull = false;
      node.offset = 0;
      if (node.isPaused) node.resume();
      node.boot();
    }
    await this.#run(this.scheduler.now + 1_000);
    if (this.figures.losses > 0 || this.figures.restores > 0) await this.#tidyUp();
  }

  /** The operator's work after a loss: removes lost controllers, and registers controllers anew whose registration is missing. */
  async #tidyUp(): Promise<void> {
    await this.#run(this.scheduler.now + 6_000);
    for (const node of this.living) if (node.replica?.status().catchingUp) this.#repair(node);
    await this.#run(this.scheduler.now + 1_000);
    const steward = this.living.find(({ replica }) => replica?.status().ready);
    if (!steward) return;
    const isRegistered = (id: string): boolean => steward.replica?.get(authKeyOf(id)) !== undefined;
    const changes = this.nodes
      .filter(({ id, isLost }) => isLost === isRegistered(id))
      .flatMap(({ id, isLost }) => (isLost ? [{ key: authKeyOf(id), value: null }] : registration(id)));
    for (let attempt = 0; changes.length > 0 && attempt < 20; attempt++)
      if (await this.#write(steward, changes)) break;
      else await this.#run(this.scheduler.now + 2_000);
    for (const node of this.living)
      if (!node.replica?.status().ready) {
        node.kill();
        node.join = [steward.id];
        node.boot();
      }
  }

  /** `kcore controller repair --alone`, for a controller that has lost contact with all controllers in its state. */
  #repair(node: SimNode): void {
    node.kill();
    const word = (): string => this.#random.below(0x100000000).toString(16).padStart(8, "0");
    node.disk.durable = [...node.disk.durable.map(mergedAtOnce), newOriginGeneration(node.id, word, true)];
    node.boot();
  }

  get living(): readonly SimNode[] {
    return this.nodes.filter(({ isLost }) => !isLost);
  }

  /** (2) All replicas have the same state within `bound` virtual milliseconds. Returns the milliseconds until then. */
  async converge(bound: number): Promise<number> {
    const start = this.scheduler.now;
    for (;;) {
      await this.#run(this.scheduler.now + 250);
      const difference = this.#difference();
      if (difference === undefined) return this.scheduler.now - start;
      if (this.scheduler.now - start > bound)
        throw new Violation(`(2) no convergence after ${bound} ms: ${difference}`);
    }
  }

  #difference(): string | undefined {
    const [first, ...rest] = this.living.map(({ id, hasDiverged, replica }) => ({
      id,
      hasDiverged,
      ...viewOf(replica as Replica),
    }));
    for (const view of [first, ...rest]) {
      if (!view?.isReady) return `${view?.id} is not ready`;
      // A third controller may bring back later the transactions that a repaired one has lost: until then digests differ.
      if ((view.hasDiverged || view.hasEquivocation) && this.figures.mends === 0)
        throw new Violation(`(2) ${view.id} found that its peer holds another state`);
      if (view.vector !== first?.vector) return `${first?.id} has seen ${first?.vector}, ${view.id} ${view.vector}`;
    }
    for (const view of rest)
      for (const what of ["live", "conflicts"] as const) {
        if (view[what] === first?.[what]) continue;
        // Controllers that had forgotten a deletion do not list its conflict with a change of a restored one (docs/replication.md, Put back without kcore).
        const hasRestores = this.figures.restores > 0 && what === "conflicts";
        if (hasRestores && withoutDeletions(view[what]) === withoutDeletions(first?.[what])) continue;
        // A controller that lost one side of a conflict by damage may no longer list the conflict (docs/replication.md, Damaged).
        if (this.figures.mends > 0 && what === "conflicts") continue;
        if (this.figures.mends > 0)
          return `${first?.id} and ${view.id} are exchanging:\n${difference(first, view, what)}`;
        throw new Violation(`(2) equal vectors, different ${what}:\n${difference(first, view, what)}`);
      }
    return undefined;
  }

  check(): void {
    const { losses, restores } = this.figures;
    const isExact = losses === 0 && restores === 0;
    for (const { id, replica, operator } of this.living) {
      if (!replica || !operator) continue;
      this.history.checkAcked(replica, (key) => replica.get(key));
      this.history.checkConflicts(id, replica.conflicts(), isExact);
      this.history.checkDecisions(id, (node) => operator.approvalOf(node), isExact);
    }
  }

  /** All events and their results in one text, to compare two runs of one seed. */
  trace(): string {
    return JSON.stringify([
      this.scheduler.executed,
      this.scheduler.now,
      this.network.sent,
      this.history.ackedCount,
      this.figures,
      ...this.living.map(({ replica }) => viewOf(replica as Replica)),
    ]);
  }
}

/** The changes that register a controller: its membership and version. */
function registration(id: string): readonly KeyChange[] {
  return [
    { key: authKeyOf(id), value: { spki: id } },
    { key: keys.controller(id).version, value: { version: "1" } },
  ];
}

function isReady({ replica }: SimNode): boolean {
  return replica?.status().ready === true;
}

function viewOf(replica: Replica) {
  const { vv, ready, alarms } = replica.status();
  return {
    vector: JSON.stringify(Object.entries(vv).toSorted(([a], [b]) => (a < b ? -1 : 1))),
    live: JSON.stringify(Array.from(replica.entries(""), ([key, { text, o, s }]) => [key, text, o, s])),
    conflicts: JSON.stringify(replica.conflicts()),
    isReady: ready,
    hasEquivocation: alarms.some(({ code }) => code === "EQUIVOCATION"),
  };
}

/** The conflicts in which another change than a deletion was lost, with these changes alone. */
function withoutDeletions(conflicts = "[]"): string {
  const all = (JSON.parse(conflicts) as ReturnType<Replica["conflicts"]>).map(
    ({ key, winner, loser, others = [] }) => ({
      key,
      winner,
      lost: [loser, ...others].filter(({ text }) => text !== null),
    }),
  );
  return JSON.stringify(all.filter(({ lost }) => lost.length > 0));
}

/** The items that only one of the two has. */
function difference(
  a: { readonly id: string; readonly live: string; readonly conflicts: string } | undefined,
  b: { readonly id: string; readonly live: string; readonly conflicts: string },
  what: "live" | "conflicts",
): string {
  const items = (text = "[]"): ReadonlySet<string> =>
    new Set((JSON.parse(text) as readonly unknown[]).map((item) => JSON.stringify(item)));
  const [ofA, ofB] = [items(a?.[what]), items(b[what])];
  const only = (id: string | undefined, these: ReadonlySet<string>, those: ReadonlySet<string>): readonly string[] =>
    [...these].filter((item) => !those.has(item)).map((item) => `${id} alone: ${item}`);
  return [...only(a?.id, ofA, ofB), ...only(b.id, ofB, ofA)].join("\n");
}
