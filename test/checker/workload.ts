import { setTimeout as sleep } from "node:timers/promises";
import type { Answer } from "./client.ts";
import type { Controller } from "./controllers.ts";
import type { Outcome, Write } from "./history.ts";
import type { Random } from "#support/random.ts";

/** Writes of one episode, each with its outcome for the client. */
export class Workload {
  readonly writes: Write[] = [];
  readonly falselyHealthy: string[] = [];
  readonly node: string;
  readonly episode: number;
  #values = 0;
  #isOver = false;
  readonly #held = new Set<number>();
  readonly #busy = new Set<number>();
  readonly #running = new Map<number, Promise<void>>();

  constructor(episode: number) {
    this.episode = episode;
    this.node = `00000000-0000-4000-8000-${String(episode).padStart(12, "0")}`;
  }

  /** Makes the node for decisions. */
  async prepare({ client }: Controller): Promise<void> {
    const body = { name: `node-${this.episode}`, roles: ["worker"], source: "manifest" };
    const { status } = await client.post(`/v1/nodes/${this.node}/expected`, body);
    if (status !== 200) throw new Error(`a node could not be announced: ${status}`);
  }

  /** Writes keys of its own at each controller, and common keys at both of `pair`, until {@link stop}. */
  start(controllers: readonly Controller[], pair: readonly [number, number], random: Random): void {
    for (const controller of controllers) {
      const own = random.fork();
      const shared = pair.includes(controller.index) ? random.fork() : undefined;
      this.#running.set(controller.index, this.#write(controller, own, shared));
    }
  }

  /** Resolves when the workload makes no more requests to a controller, until it is released. */
  async hold(at: number): Promise<void> {
    this.#held.add(at);
    // A pending write ends in time, with an answer or without.
    while (this.#busy.has(at)) await sleep(5);
  }

  release(at: number): void {
    this.#held.delete(at);
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#running.values());
  }

  async #write(controller: Controller, own: Random, shared: Random | undefined): Promise<void> {
    for (let turn = 0; !this.#isOver; turn++) {
      if (!this.#held.has(controller.index)) {
        this.#busy.add(controller.index);
        if (shared && turn % 4 === 3) await this.#writeShared(controller, shared);
        else await this.#writeOwn(controller, own);
        this.#busy.delete(controller.index);
      }
      await sleep(own.between(5, 20));
    }
  }

  #writeOwn(controller: Controller, random: Random): Promise<Outcome> {
    const name = `e${this.episode}-by${controller.index}-${random.below(6)}`;
    if (random.chance(0.15)) return this.label(controller, name, random.chance(0.2));
    return this.put(controller, `Own/${name}`, random.chance(0.15));
  }

  #writeShared(controller: Controller, random: Random): Promise<Outcome> {
    const die = random.next();
    if (die < 0.2) return this.decide(controller, random.chance(0.5) ? "approved" : "rejected");
    const name = `e${this.episode}-both-${random.below(5)}`;
    if (die < 0.35) return this.label(controller, name, false);
    return this.put(controller, `Both/${name}`, random.chance(0.1), random.chance(0.3));
  }

  /** Writes a new value under `KIND/NAME`, or removes it; with `looks`, it reads the key first. */
  async put(controller: Controller, id: string, isRemoval = false, looks = false): Promise<Outcome> {
    const path = `/v1/objects/${encodeURIComponent(id)}`;
    let read: { readonly read?: string | null } = {};
    if (looks) {
      const { status, body } = await controller.client.get(path);
      if (status === 200) read = { read: (body["value"] as { v?: string }).v ?? null };
    }
    const value = isRemoval ? null : this.#newValue();
    const ask = (): Promise<Answer> =>
      isRemoval ? controller.client.post(`${path}/remove`) : controller.client.post(path, { value: { v: value } });
    return this.#record(controller, { key: `object/${id}`, value, ...read }, ask);
  }

  label(controller: Controller, name: string, isRemoval: boolean): Promise<Outcome> {
    const value = isRemoval ? null : this.#newValue();
    const body = value === null ? { remove: [name] } : { set: { [name]: value } };
    const ask = (): Promise<Answer> => controller.client.post(`/v1/nodes/${this.node}/labels`, body);
    return this.#record(controller, { key: `label/${this.node}/${name}`, value }, ask);
  }

  decide(controller: Controller, value: "approved" | "rejected"): Promise<Outcome> {
    const verb = value === "approved" ? "approve" : "reject";
    const ask = (): Promise<Answer> => controller.client.post(`/v1/nodes/${this.node}/${verb}`);
    return this.#record(controller, { key: `decision/${this.node}`, value }, ask);
  }

  #newValue(): string {
    return `v${this.episode}.${++this.#values}`;
  }

  async #record(
    controller: Controller,
    what: Pick<Write, "key" | "value" | "read">,
    ask: () => Promise<Answer>,
  ): Promise<Outcome> {
    const began = performance.now();
    const answer = await ask();
    // An absent key is not removed: no write happened.
    if (answer.body["result"] === "unchanged") return "ok";
    const outcome = outcomeOf(answer);
    const write = { ...what, episode: this.episode, at: controller.index, began, ended: performance.now(), outcome };
    this.writes.push(write);
    if (answer.status === 503 && this.falselyHealthy.length < 5) await this.#doubt(controller, answer);
    return outcome;
  }

  /** After a refused write, the controller must report a reason, unless it soon accepts a write again. */
  async #doubt({ client, index }: Controller, { body }: Answer): Promise<void> {
    let says: readonly string[] = [];
    const isFalse = async (): Promise<boolean> => {
      const status = await client.get("/v1/replication");
      const ready = await client.get("/readyz");
      says = [status.body["healthy"] === true ? "healthy" : "", ready.body["ready"] === true ? "ready" : ""];
      if (says.every((word) => word === "")) return false;
      const value = { v: this.#newValue() };
      const again = await client.post(`/v1/objects/${encodeURIComponent(`Probe/${index}`)}`, { value });
      const after = await client.get("/v1/replication");
      return again.status === 503 && after.body["healthy"] === true;
    };
    for (let turn = 0; turn < 20; turn++, await sleep(50)) if (!(await isFalse())) return;
    this.falselyHealthy.push(
      `${index} refuses writes (${String(body["code"])}: ${String(body["message"])}), and says that it is ${says.filter(Boolean).join(" and ")}`,
    );
  }
}

/** A write was surely not done only if the refusal's reason precedes the write. */
function outcomeOf({ status, body }: Answer): Outcome {
  if (status >= 200 && status < 300) return "ok";
  const isRefusal = (status >= 400 && status < 500) || body["code"] === "CONTROLLER_READ_ONLY";
  return isRefusal ? "refused" : "unknown";
}
