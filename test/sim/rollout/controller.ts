import { decide } from "#rollout/decide.ts";
import { defined } from "#optional/defined.ts";
import { fenceOf, stepOf } from "#rollout/order.ts";
import { answerable } from "#rollout/hooks.ts";
import type { Fence, HookAnswer, Report } from "#rollout/records.ts";
import { isGranted, mayGrant, nextEpoch } from "#rollout/takeover.ts";
import { hookKey, type RolloutNode, type RolloutView } from "#rollout/view.ts";
import type { SimOrder } from "./memory.ts";
import { Records, versionOf, type Head } from "./records.ts";
import { Registers, type Page } from "./registers.ts";
import type { RolloutWorld } from "./world.ts";

export const names = ["u", "v"] as const;
/** A node is ready for so long after it was heard last, ms. */
export const staleAfter = 90_000;
const leaseMs = 30_000;
const base = 1_700_000_000_000;

export type Changes = readonly (readonly [string, unknown])[];

/** A controller: registers that outlive it, and a process that looks at them, decides, writes, and only then lets nodes and peers know. */
export class SimController {
  readonly id: string;
  readonly registers: Registers;
  readonly updates: readonly Records[];
  readonly #world: RolloutWorld;
  isUp = true;
  /** Its wall clock is off by so many ms. */
  offset = 0;
  #boot = 0;
  #isWriting = false;
  #seenVersion = -1;
  #heard = new Map<string, number>();
  #peers = new Map<string, number>();
  /** Nodes that wait here for orders. */
  #waiting = new Map<string, { readonly at: number; readonly taken?: Fence; readonly known?: Fence }>();
  #said = new Map<string, Report>();
  #asked: Changes[] = [];

  constructor(world: RolloutWorld, id: string) {
    this.id = id;
    this.#world = world;
    this.registers = new Registers(id);
    this.updates = names.map((name) => new Records(this.registers, name));
    this.registers.onChanged = (key) => this.#rowChanged(key);
  }

  of(name: string): Records {
    return this.updates.find((records) => records.name === name) as Records;
  }

  get #mono(): number {
    return this.#world.scheduler.now;
  }

  get wall(): number {
    return base + this.#mono + this.offset;
  }

  /** Stamps keep to what the drift bound lets pass, decisions believe the wall. */
  get #stampWall(): number {
    return base + this.#mono + Math.max(-8_000, Math.min(8_000, this.offset));
  }

  kill(): void {
    this.isUp = false;
    this.#boot++;
    this.#isWriting = false;
    this.#heard = new Map();
    this.#peers = new Map();
    this.#waiting = new Map();
    this.#said = new Map();
    this.#asked = [];
  }

  start(): void {
    if (this.isUp) return;
    this.isUp = true;
    this.#seenVersion = -1;
    this.tick();
  }

  tick(): void {
    if (!this.isUp) return;
    // What it heard itself: hearsay would keep a dead node alive.
    const seen = [...this.#waiting].map(([id, { at }]) => [id, this.#mono - at] as const);
    const vector = new Map(this.registers.vector);
    for (const peer of this.#world.controllers)
      if (peer !== this) this.#world.send(this.id, peer.id, () => peer.pulled(this, vector, seen));
    this.#seenVersion = -1;
    this.loop();
  }

  /** A peer asks for what it has not seen, and says which nodes it heard. */
  pulled(from: SimController, vector: ReadonlyMap<string, number>, seen: readonly (readonly [string, number])[]): void {
    if (!this.isUp) return;
    for (const [id, age] of seen) this.#heard.set(id, Math.max(this.#heard.get(id) ?? 0, this.#mono - age));
    this.#world.send(this.id, from.id, () => from.answered(this.id));
    for (const page of this.registers.since(vector)) this.#world.send(this.id, from.id, () => from.received(page));
  }

  answered(by: string): void {
    if (this.isUp) this.#peers.set(by, this.#mono);
  }

  received(page: Page): void {
    if (!this.isUp) return;
    this.registers.merge(page);
    this.loop();
  }

  /** A node's heartbeat, with its word: it is answered with the order that its agent does not know. */
  exchanged(id: string, report: Report | undefined, known: Fence | undefined): SimOrder | undefined {
    this.#heard.set(id, this.#mono);
    this.#waiting.set(id, { at: this.#mono, ...defined({ taken: report?.fence, known }) });
    if (report && report.epoch > (this.of(report.fence.name).report(id)?.epoch ?? 0)) this.#said.set(id, report);
    this.loop();
    return this.#orderFor(id);
  }

  /** One update has a node until it has ended; of the others, those that have not ended come first. */
  #orderFor(id: string): SimOrder | undefined {
    const { taken, known } = this.#waiting.get(id) ?? {};
    const isOpen = (records: Records): boolean => !endPhases.has(records.progress?.phase ?? "");
    const rank = (records: Records): number => (isOpen(records) ? 0 : 2) + (records.name === taken?.name ? 0 : 1);
    const [first, ...rest] = this.updates.filter(({ rows }) => rows.has(id)).toSorted((a, b) => rank(a) - rank(b));
    const holder = this.updates.find(({ name }) => name === taken?.name);
    const all = holder && isOpen(holder) ? [holder] : first ? [first, ...rest] : [];
    for (const records of all) {
      const row = records.rows.get(id);
      const last = [known, taken, records.report(id)?.fence].find((fence) => fence?.name === records.name);
      const isKnown = row && last?.epoch === row.epoch && last.owner === row.owner && last.seq >= row.seq;
      // What the bastion signed comes with it.
      if (row && !isKnown && records.head?.generation === row.generation)
        return { fence: fenceOf(records.name, row), step: stepOf(row.phase), target: records.head.target };
    }
    return undefined;
  }

  #rowChanged(key: string): void {
    this.#world.checks.changed(this, key);
    const [, , what, id = ""] = key.split("/", 4);
    const waiting = what === "node" ? this.#waiting.get(id) : undefined;
    if (!this.isUp || !waiting || this.#mono - waiting.at > 20_000) return;
    const order = this.#orderFor(id);
    if (order) this.#world.hand(this.id, id, order);
  }

  /** Something that an operator asked of this controller. */
  ask(changes: Changes): void {
    if (!this.isUp) return;
    this.#asked.push(changes);
    this.loop();
  }

  takeOver(name: string, isForced: boolean): void {
    const records = this.of(name);
    const { owner, claims, grants } = records;
    if (!this.isUp || !owner) return;
    const epoch = nextEpoch(owner, [...claims, ...grants]);
    if (isForced) return this.ask([[records.key("owner"), { epoch, owner: this.id, isForced }]]);
    this.ask([[records.key(`claim/${epoch}/${this.id}`), { epoch, claimant: this.id }]]);
  }

  /** Takes a manifest, as its owner, when the one before is done with. */
  apply(name: string, head: Omit<Head, "generation">, generation: number): void {
    const records = this.of(name);
    const { owner, progress } = records;
    const isFirst = owner === undefined;
    const isEnded =
      progress !== undefined && progress.generation === records.head?.generation && endPhases.has(progress.phase);
    if (!this.isUp || !(isFirst || (owner.owner === this.id && isEnded && this.hasMajority))) return;
    const owns = isFirst ? [[records.key("owner"), { epoch: 1, owner: this.id }] as const] : [];
    this.ask([[records.key("head"), { ...head, generation }], ...owns]);
  }

  /** How an update stands, by what is known here. */
  viewOf(name: string): RolloutView | undefined {
    const { hasMajority } = this;
    return this.of(name).viewOf({ self: this.id, nodes: this.#nodes(), now: this.wall, hasMajority });
  }

  /** What came of a hook, taken as src/controller/updates/answer-hook.ts does. */
  answer(
    name: string,
    { id, hook }: { readonly id: string; readonly hook: string },
    answer: Pick<HookAnswer, "generation" | "seq" | "ok">,
  ): void {
    const view = this.viewOf(name);
    const row = view?.rows.get(id);
    const isForRow = row?.generation === answer.generation && row.seq === answer.seq;
    if (!view || !isForRow || answerable(view, id, row) !== hook) return;
    const { epoch, owner } = row;
    this.ask([[this.of(name).key(`hook/${hookKey(id, hook)}`), { ...answer, epoch, owner }]]);
  }

  get hasMajority(): boolean {
    const reached = [...this.#peers.values()].filter((at) => this.#mono - at < leaseMs).length + 1;
    return reached * 2 > this.#world.controllers.length;
  }

  /** Looks at all that it holds, and writes what follows: one transaction at a time, durable before anything is done by it. */
  loop(): void {
    if (!this.isUp || this.#isWriting) return;
    const changes = this.#asked.shift() ?? this.#saidNow() ?? this.#decided();
    if (changes) this.#write(changes);
  }

  #saidNow(): Changes | undefined {
    if (this.#said.size === 0) return undefined;
    const changes = [...this.#said].map(
      ([id, report]) => [this.of(report.fence.name).key(`report/${id}`), report] as const,
    );
    this.#said = new Map();
    return changes;
  }

  #decided(): Changes | undefined {
    // Nothing is new, and no time has passed that counts.
    if (this.#seenVersion === this.registers.version) return undefined;
    for (const records of this.updates) {
      const changes = this.#granted(records) ?? this.#taken(records) ?? this.#next(records);
      if (changes) return changes;
    }
    this.#seenVersion = this.registers.version;
    return undefined;
  }

  #granted(records: Records): Changes | undefined {
    const { owner, claims, grants } = records;
    if (!owner || claims.length === 0) return undefined;
    for (const { epoch, claimant } of claims)
      if (mayGrant(owner, grants, this.id, epoch))
        return [[records.key(`grant/${epoch}/${this.id}`), { epoch, controller: this.id, claimant }]];
    return undefined;
  }

  #taken(records: Records): Changes | undefined {
    const { owner, claims, grants } = records;
    const controllers = new Set(this.#world.controllers.map(({ id }) => id));
    for (const claim of claims)
      if (owner && claim.claimant === this.id && claim.epoch > owner.epoch && isGranted(grants, controllers, claim))
        return [[records.key("owner"), { epoch: claim.epoch, owner: this.id }]];
    return undefined;
  }

  #next(records: Records): Changes | undefined {
    if (records.owner?.owner !== this.id) return undefined;
    const view = this.viewOf(records.name);
    if (!view) return undefined;
    const { progress, rows } = decide(view);
    const changes: (readonly [string, unknown])[] = [...rows].map(([id, row]) => [records.key(`node/${id}`), row]);
    if (progress) changes.push([records.key("progress"), progress]);
    return changes.length > 0 ? changes : undefined;
  }

  #nodes(): ReadonlyMap<string, RolloutNode> {
    return new Map(
      this.#world.members.map(({ id, isController, dc }) => {
        const isReady = this.#mono - (this.#heard.get(id) ?? -Infinity) < staleAfter;
        const version = versionOf(this.updates, id);
        return [id, { id, hostname: id, dc, labels: {}, isController, isApproved: true, isReady, version }];
      }),
    );
  }

  #write(changes: Changes): void {
    this.#isWriting = true;
    const boot = this.#boot;
    this.#world.scheduler.after(this.#world.random.between(1, 60), () => {
      if (this.#boot !== boot) return;
      const fate = this.#world.beforeCommit(this, changes);
      if (fate === "before") return this.kill();
      this.#world.checks.committing(this, changes);
      const page = this.registers.write(changes, this.#stampWall);
      if (fate === "after") return this.kill();
      this.#isWriting = false;
      for (const peer of this.#world.controllers)
        if (peer !== this) this.#world.send(this.id, peer.id, () => peer.received(page));
      this.loop();
    });
  }
}

export const endPhases: ReadonlySet<string> = new Set(["succeeded", "failed", "cancelled", "rolled_back"]);
