import { isKnown, isSecret, mergeKindOf } from "#controller/cluster/registers.ts";
import { authKeyOf } from "#controller/replica/registered-controllers.ts";
import type { Json } from "#controller/replica/replica.ts";
import { Chance } from "#support/random.ts";
import { SimNetwork, type Endpoint } from "../sim/network.ts";
import { SimNode, cluster, epoch, type Surroundings } from "../sim/node.ts";
import { Random } from "../sim/random.ts";
import { Scheduler } from "../sim/scheduler.ts";
import { drawSwarm } from "../sim/swarm.ts";
import { Liar, type Habit } from "./liar.ts";

export interface Outcome {
  readonly seed: number;
  readonly habits: readonly Habit[];
  readonly failures: readonly string[];
  readonly acknowledged: number;
  readonly lies: number;
  /** From the removal until the honest agreed, virtual ms; undefined: they did not. */
  readonly agreedMs: number | undefined;
}

const liarId = "h";
const agreeWithinMs = 10_000;

/** Two or three honest members and one that lies, for one seed: founded, lied to, the liar removed; then what the honest hold is judged. */
export async function runSeed(seed: number, only?: ReadonlySet<Habit>): Promise<Outcome> {
  const world = new LiedTo(seed, only);
  await world.start();
  await world.lie();
  const agreedMs = await world.remove();
  await world.check(agreedMs);
  const { liar, failures, acknowledged } = world;
  return { seed, habits: [...liar.habits], failures, acknowledged, lies: liar.told, agreedMs };
}

class LiedTo {
  readonly scheduler = new Scheduler();
  readonly nodes: SimNode[] = [];
  readonly liar: Liar;
  readonly failures: string[] = [];
  acknowledged = 0;
  readonly #chance: Chance;
  readonly #surroundings: Surroundings;
  /** The last acknowledged value of each object. */
  readonly #values = new Map<string, number>();
  /** Asked for and not acknowledged, with the key: may stand or not. */
  readonly #open = new Set<string>();
  readonly #revoked = new Set<string>();
  /** Whom alarms of the honest named so far, and by which code. */
  readonly #alarms = new Set<string>();
  #isWriting = false;
  #isLying = false;
  #numbers = 0;

  constructor(seed: number, only?: ReadonlySet<Habit>) {
    this.#chance = new Chance(seed);
    const random = new Random(seed);
    // The network and the disks do no harm here: what goes wrong is the liar's doing.
    const calm = { drop: 0, duplicate: 0, slow: 0, reorder: false, slowSync: false, json: true, grain: 1 };
    const swarm = { ...drawSwarm(random), ...calm };
    const network = new SimNetwork(this.scheduler, random, swarm);
    const wall = (): number => epoch + this.scheduler.now;
    this.liar = new Liar({ id: liarId, cluster, wall, chance: this.#chance.fork(), only });
    const find = (id: string): Endpoint | undefined =>
      id === liarId ? hostile : this.nodes.find((node) => node.id === id);
    const hostile: Endpoint = {
      id: liarId,
      lineage: 0,
      deliver: (run) => run(),
      accept: (link) => {
        const { peer } = link;
        const send = (message: object): void => link.send(message as never);
        const close = (): void => link.close("storm");
        return this.liar.connected({ peer, send, close, raw: () => undefined });
      },
    };
    this.#surroundings = { scheduler: this.scheduler, network, random, swarm, find };
    const dialAll = (): void => {
      if (this.liar.isStorming) this.liar.closeAll();
      if (this.#isLying && this.#chance.isLucky(0.3))
        network.dial(hostile, this.#chance.pick(this.nodes), 1_000, () => undefined);
      if (this.#isLying) this.liar.tick();
      this.scheduler.after(this.#chance.between(20, 200), dialAll);
    };
    dialAll();
  }

  async start(): Promise<void> {
    const founder = this.#add("c0");
    await this.#put(founder, authKeyOf("c0"), { spki: "c0", dc: "DC1" });
    for (const id of this.#chance.isLucky(0.5) ? ["c1"] : ["c1", "c2"]) {
      await this.#put(founder, authKeyOf(id), { spki: id, dc: "DC1" });
      this.#add(id, "c0");
    }
    await this.#until(() => this.nodes.every(({ replica }) => replica?.status().ready === true), 20_000);
    this.#isWriting = true;
    this.#writeOn();
    await this.#run(1_000);
    await this.#put(founder, authKeyOf(liarId), { spki: liarId, dc: "DC2" });
    this.#isLying = true;
  }

  /** The liar speaks; the honest write, and one of them may lose its power, or be cut off from the others, and not from the liar. */
  async lie(): Promise<void> {
    const halfMs = this.#chance.between(3_000, 8_000);
    await this.#run(halfMs);
    if (this.#chance.isLucky(0.3)) {
      const victim = this.#chance.pick(this.nodes);
      victim.crash();
      await this.#run(500);
      victim.boot();
    } else if (this.#chance.isLucky(0.4)) await this.#cutOff(this.#chance.pick(this.nodes));
    await this.#run(halfMs);
  }

  async #cutOff(victim: SimNode): Promise<void> {
    const { blocked } = this.#surroundings.network;
    const others = this.nodes.filter((node) => node !== victim);
    const pairs = others.flatMap(({ id }) => [`${victim.id}>${id}`, `${id}>${victim.id}`]);
    for (const pair of pairs) blocked.add(pair);
    await this.#run(this.#chance.between(2_000, 10_000));
    for (const pair of pairs) blocked.delete(pair);
  }

  /** Takes it off the list; gives how long it took until the honest held the same. It goes on lying. */
  async remove(): Promise<number | undefined> {
    // Who is refused by one asks another one.
    const first = this.#chance.below(this.nodes.length);
    const stewards = [...this.nodes.slice(first), ...this.nodes.slice(0, first)];
    let isRemoved = false;
    for (const steward of stewards) isRemoved ||= await this.#put(steward, authKeyOf(liarId), null);
    const removedAt = this.scheduler.now;
    if (!isRemoved) {
      this.failures.push("the liar could not be removed: each refused the write");
      return undefined;
    }
    await this.#run(1_000);
    this.#isWriting = false;
    const isAgreed = await this.#until(() => this.#difference() === undefined, agreeWithinMs - 1_000);
    return isAgreed ? this.scheduler.now - removedAt : undefined;
  }

  async check(agreedMs: number | undefined): Promise<void> {
    if (agreedMs === undefined)
      this.failures.push(`no agreement within ${agreeWithinMs} ms of the removal: ${this.#difference()}`);
    for (const { id, replica } of this.nodes) {
      for (const [key, number] of this.#values) {
        const text = replica?.get(key)?.text;
        const held = text ? (JSON.parse(text) as { v: number }).v : undefined;
        const isLater = held !== undefined && held > number && this.#open.has(`${key} ${held}`);
        if (held !== number && !isLater)
          this.failures.push(`lost at ${id}: ${key} is ${held?.toString().slice(0, 20)}, acknowledged was ${number}`);
      }
      // One whose text was overwritten, and says nothing any more, counts even so.
      for (const key of this.#revoked) if (!replica?.stands(key)) this.failures.push(`a revocation is lost at ${id}`);
    }
    if (![...this.#alarms].some((alarm) => /\bh(#| |$)/.test(alarm))) this.failures.push("no alarm names it");
    await this.#checkLife();
  }

  /**
   * Each honest member must take writes as before, and all must hear of them. One that was started while the liar claimed to have more of
   * it looks for that for 30 s, as it would after it had been put back.
   */
  async #checkLife(): Promise<void> {
    await this.#until(() => this.nodes.every(({ replica }) => replica?.status().readOnly === undefined), 35_000);
    for (const node of this.nodes) {
      const key = `object/After/${node.id}`;
      if (!(await this.#put(node, key, { v: 1 })))
        this.failures.push(`${node.id} takes no writes after the removal (${node.replica?.status().readOnly})`);
      else if (
        !(await this.#until(() => this.nodes.every(({ replica }) => replica?.get(key) !== undefined), agreeWithinMs))
      )
        this.failures.push(`what ${node.id} writes after the removal does not arrive`);
    }
  }

  /** A member as it ships, with the real kinds of registers. Its wall clock is nearly right. */
  #add(id: string, ...join: readonly string[]): SimNode {
    const node: SimNode = new SimNode(this.#surroundings, id, {
      start: join.length === 0 ? "found" : "join",
      join,
      mergeKindOf,
      isKnown,
      isSecret,
      log: (_level, message, fields) => {
        const { alarm, about } = (fields ?? {}) as { readonly alarm?: string; readonly about?: string };
        if (alarm !== undefined) this.#alarms.add(`${alarm} ${about} ${message}`);
      },
    });
    node.offset = Math.floor(this.#surroundings.random.between(-200, 200));
    node.boot();
    this.nodes.push(node);
    return node;
  }

  #run(ms: number): Promise<void> {
    return this.scheduler.runUntil(this.scheduler.now + ms);
  }

  async #until(look: () => boolean, withinMs: number): Promise<boolean> {
    const end = this.scheduler.now + withinMs;
    while (!look() && this.scheduler.now < end) await this.#run(50);
    return look();
  }

  #writeOn(): void {
    this.scheduler.after(this.#chance.between(20, 120), () => {
      if (this.#isWriting) this.#writeSomething(this.#chance.pick(this.nodes));
      this.#writeOn();
    });
  }

  #writeSomething({ id, replica }: SimNode): void {
    if (!replica) return;
    const number = ++this.#numbers;
    const isRevocation = this.#chance.isLucky(0.1);
    const key = isRevocation
      ? `revoked/${number.toString(16).padStart(64, "0")}`
      : `object/Kept/${id}-${this.#chance.below(8)}`;
    const value = isRevocation
      ? { at: "2026-01-01T00:00:00.000Z", by: "operator ann", reason: "stolen" }
      : { v: number };
    this.#open.add(`${key} ${number}`);
    replica.write([{ key, value }]).then(
      () => {
        this.acknowledged++;
        if (isRevocation) this.#revoked.add(key);
        else this.#values.set(key, number);
      },
      () => undefined,
    );
  }

  /** Tries again, as an operator does. */
  async #put({ replica }: SimNode, key: string, value: Json): Promise<boolean> {
    for (let attempt = 0; attempt < 8; attempt++) {
      let done: boolean | undefined;
      replica?.write([{ key, value }]).then(
        () => (done = true),
        () => (done = false),
      );
      await this.#until(() => done !== undefined, 1_000);
      if (done === true) return true;
      await this.#run(200);
    }
    return false;
  }

  /** What keeps the honest from being the same; undefined: nothing. */
  #difference(): string | undefined {
    const [first, ...others] = this.nodes.map(({ id, replica }) => {
      const { vv, digest } = replica?.status() ?? { vv: {}, digest: "" };
      const vector = Object.entries(vv).toSorted(([a], [b]) => (a < b ? -1 : 1));
      return { id, digest, vector: JSON.stringify(vector) };
    });
    for (const other of others) {
      if (other.vector !== first?.vector)
        return `${first?.id} has seen ${first?.vector.slice(0, 300)}, ${other.id} ${other.vector.slice(0, 300)}`;
      if (other.digest !== first.digest)
        return `${first.id} and ${other.id} have seen the same, and hold different things`;
    }
    return undefined;
  }
}
