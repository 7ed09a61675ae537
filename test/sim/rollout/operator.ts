import type { Controllers } from "#api/ask.ts";
import type { UpdateDraft } from "#api/update-schemas.ts";
import { runTasks } from "#base/tasks.ts";
import { KcoreError } from "#errors/problem.ts";
import { hasEnded, type RequestAction } from "#rollout/records.ts";
import type { SignedStatement } from "#rollout/spec.ts";
import { requestPlan, signAndHandOver } from "../../../src/cli/update/submit-update.ts";
import { askControllers, endpointOf } from "./client.ts";
import { names, type SimController } from "./controller.ts";
import { bundleOf, parseSpec, sign, signOwner } from "./targets.ts";
import type { RolloutWorld } from "./world.ts";

const bastion = { from: "b", role: "operator", id: "ann", isPatient: true, timeoutMs: 5_000 } as const;

/** The operators: they apply, approve, cancel, roll back and take over, at a random controller. */
export class Operator {
  readonly #world: RolloutWorld;
  /** The bastion's access to the controllers. */
  readonly cluster: Controllers;
  readonly #targets = new Map<string, string>();
  #made = 0;
  readonly soakSeconds: number | undefined;

  constructor(world: RolloutWorld) {
    this.#world = world;
    const controllers = world.controllers.map(({ id }) => id);
    this.cluster = askControllers(world, { ...bastion, controllers });
    this.soakSeconds = world.random.chance(0.5) ? 60 : undefined;
  }

  begin(until: number): void {
    const { swarm, scheduler, random, figures } = this.#world;
    const sometime = (share: number, run: () => void): void => {
      scheduler.after(10_000 + random.between(0, share) * until, () => {
        if (!this.#world.isHealed) run();
      });
    };
    scheduler.after(100, () => void this.#applyFirst("u"));
    if (swarm.second) sometime(0.5, () => void this.#applyFirst("v"));
    for (const name of names) {
      sometime(0.3, () => this.#approve(name));
      sometime(0.7, () => this.#promote(name));
    }
    for (let index = 0; index < swarm.takeovers; index++) sometime(0.9, () => this.#takeOver());
    if (swarm.removes) for (const name of names) sometime(0.9, () => this.#any().remove(name));
    if (swarm.cancels)
      sometime(0.7, () => {
        figures.cancels++;
        this.#request(random.pick(names), "cancel");
      });
    if (swarm.rollbacks)
      for (let index = 0; index < 2; index++)
        sometime(0.9, () => {
          figures.rollbacks++;
          const name = random.chance(0.8) ? "u" : "v";
          if (random.chance(0.15)) this.#rollBackNow(name);
          else this.#request(name, "rollback");
        });
    if (swarm.manifests && random.chance(0.6)) this.#correct();
    else if (swarm.manifests) sometime(0.5, () => this.#applyNext());
  }

  /** Corrects a wrong manifest: cancels it as soon as a node prepares, and applies the next one at once. */
  #correct(): void {
    const { scheduler, machines, isHealed, figures } = this.#world;
    if (isHealed) return;
    if (!machines.some(({ state }) => state === "preparing")) {
      scheduler.after(3_000, () => this.#correct());
      return;
    }
    figures.cancels++;
    this.#request("u", "cancel");
    scheduler.after(2_000, () => this.#applyNext());
  }

  /**
   * Applies the next manifest as soon as the one before is done. At times only the owner learns of it, and another controller takes over.
   */
  #applyNext(): void {
    const { scheduler, random, figures, nemesis, removed } = this.#world;
    if (this.#world.isHealed || removed.has("u")) return;
    const { progress, owner: present } = this.#world.ownerOf("u")?.of("u") ?? {};
    const isAlone = progress !== undefined && hasEnded(progress.phase) && random.chance(0.4);
    if (isAlone && present) nemesis.cutOff(present.owner, random.between(5_000, 100_000));
    void this.#apply("u", random.chance(0.8)).then((owner) => {
      if (this.#world.isHealed) return;
      if (owner === undefined) return void scheduler.after(2_000, () => this.#applyNext());
      if (isAlone) this.takeOver("u", random.pick(this.#world.controllers.filter(({ id }) => id !== owner)));
      // A rollback may be requested even before the approval.
      if (random.chance(0.3)) {
        figures.rollbacks++;
        this.#request("u", "rollback");
      }
      if (random.chance(0.5)) this.#correct();
      else scheduler.after(60_000, () => this.#applyNext());
    });
  }

  #any() {
    return this.#world.random.pick(this.#world.controllers);
  }

  /** As `kcore update cluster apply`. Returns the owner's id if the update was accepted. */
  async #apply(name: string, again = false, cluster = this.cluster): Promise<string | undefined> {
    const { begun, scheduler } = this.#world;
    begun.add(name);
    try {
      const draft = this.#draft(name);
      const prepared = { draft, bundle: undefined, tasks: runTasks, ...(await requestPlan(cluster, draft, again)) };
      // A controller without records of the update would become a second owner.
      if (cluster === this.cluster && !prepared.present) return undefined;
      const { id, epoch } = prepared.plan.owner;
      const asked = { signed: sign(draft, scheduler.now), ownership: this.#signOwner(name, id, epoch) };
      const options = { again, sign: () => Promise.resolve(asked) };
      const { applied } = await signAndHandOver(cluster, prepared, options);
      if (applied.result !== "unchanged") return this.#world.ownerOf(name)?.id;
    } catch (error) {
      if (!(error instanceof KcoreError)) this.#world.note(`apply failed: ${(error as Error).stack}`);
    }
    return undefined;
  }

  /** Applies a new update at one controller until it is accepted: a second controller without records of it would become a second owner. */
  async #applyFirst(name: string, cluster = this.#oneController(this.cluster.current())): Promise<void> {
    await this.#apply(name, false, cluster);
    if (this.#generation(name) === 0 && !this.#world.isHealed)
      this.#world.scheduler.after(2_000, () => void this.#applyFirst(name, cluster));
  }

  /** One controller alone, by default the first. */
  #oneController(endpoint?: string): Controllers {
    const all = this.#world.controllers.map(({ id }) => id);
    const controllers = endpoint === undefined ? all.slice(0, 1) : all.filter((id) => endpointOf(id) === endpoint);
    return askControllers(this.#world, { ...bastion, controllers });
  }

  #draft(name: string): UpdateDraft {
    const { swarm, members, maxUnavailable, meant, random } = this.#world;
    const { strategy: type, withControllers } = swarm;
    const isFirst = this.#generation(name) === 0;
    const spec = parseSpec({
      target: {},
      selector: withControllers
        ? { allNodes: true }
        : { nodeIds: members.filter((each) => !each.isController).map(({ id }) => id) },
      strategy: {
        type,
        maxUnavailable,
        batchSize: Math.min(swarm.batchSize, meant),
        ...(this.soakSeconds === undefined ? {} : { canary: { soakSeconds: this.soakSeconds } }),
      },
      drain: swarm.hooks
        ? { enabled: true, command: "drain", timeoutSeconds: 60, after: { command: "undrain" } }
        : { enabled: swarm.drain },
      healthGates: swarm.gates
        ? [
            { name: "web", command: "ask", withinSeconds: 30 },
            { name: "page", http: { url: "http://127.0.0.1/" }, withinSeconds: 5 },
          ]
        : [],
      approvalPolicy: !isFirst && random.chance(0.4) ? "manual" : swarm.approval,
      rollback: { automatic: swarm.automatic },
      timeouts: { prepareSeconds: 120, activateSeconds: 120, rebootSeconds: 150, verifySeconds: 60 },
    });
    return { name, spec, bundle: bundleOf(this.#targetOf(name)) };
  }

  /** The version of the next manifest: half of the time the last one once more. */
  #targetOf(name: string): string {
    const known = this.#targets.get(name);
    const target = known !== undefined && this.#world.random.chance(0.5) ? known : `g${++this.#made}`;
    this.#targets.set(name, target);
    return target;
  }

  #generation(name: string): number {
    const heads = this.#world.controllers.map((controller) => controller.of(name).head?.generation ?? 0);
    return Math.max(...heads);
  }

  #approve(name: string): void {
    this.#any().approve(name);
  }

  #promote(name: string): void {
    const generation = this.#request(name, "promote");
    if (generation !== undefined) this.#world.promoted.add(`${name} ${generation}`);
  }

  #request(
    name: string,
    action: RequestAction,
    more: { readonly now?: boolean } = {},
    controller = this.#any(),
  ): number | undefined {
    return controller.request(name, action, more);
  }

  #rollBackNow(name: string): void {
    this.#world.checks.isForced.add(name);
    this.#request(name, "rollback", { now: true });
  }

  takeOverAndCancel(name: string, controller: SimController): void {
    const { scheduler, random, figures } = this.#world;
    this.takeOver(name, controller);
    scheduler.after(random.between(1_000, 20_000), () => {
      if (this.#world.isHealed) return;
      figures.cancels++;
      this.#request(name, "cancel", {}, controller);
    });
  }

  #signOwner(name: string, id: string, epoch: number): SignedStatement {
    this.#world.checks.signed(name, { epoch, owner: id });
    return signOwner(name, { id, epoch }, this.#world.scheduler.now);
  }

  /** As `kcore update cluster takeover`: the bastion signs `owner` as the owner, and at times another controller receives the statement. */
  takeOver(name: string, owner: SimController): void {
    const epoch = owner.nextEpoch(name);
    if (!owner.isUp || epoch === undefined) return;
    this.#world.figures.takeovers++;
    const taker = this.#world.random.chance(0.2) ? this.#any() : owner;
    taker.takeOver(name, this.#signOwner(name, owner.id, epoch));
  }

  /** Makes one controller the owner, half of the time two at once. */
  #takeOver(): void {
    const { random } = this.#world;
    const name = random.chance(0.85) ? "u" : "v";
    const count = random.chance(0.5) ? 2 : 1;
    for (let index = 0; index < count; index++) this.takeOver(name, this.#any());
  }

  takeOverAny(name: string): void {
    if (this.#world.isHealed) return;
    this.takeOver(name, this.#any());
  }

  /** An operator notices that the owner is gone. */
  takeOverSoon(name: string, from: string): void {
    const { scheduler, random, controllers } = this.#world;
    scheduler.after(random.between(1_000, 100_000), () => {
      this.takeOver(name, random.pick(controllers.filter(({ id }) => id !== from)));
    });
  }

  /** After the faults: approves, promotes or cancels waiting updates, and at times gives an update another owner. `round` counts the calls. */
  help(round: number): void {
    const { begun, controllers, random, swarm } = this.#world;
    for (const name of begun) {
      if (swarm.removes && round % 3 === 0) this.#any().remove(name);
      if (this.#generation(name) === 0) {
        begun.delete(name);
        continue;
      }
      const { progress } = random.pick(controllers).of(name);
      if (progress?.waits?.includes("approval")) this.#approve(name);
      if (progress?.waits?.includes("promotion")) this.#promote(name);
      if (progress?.waits?.includes("cancel the update")) this.#request(name, "cancel");
      // Two updates may wait for each other's nodes.
      if (round === 40 && begun.size > 1) this.#request(name, "cancel");
      if (round === 60 && begun.size > 1 && progress?.phase === "rolling_back") this.#rollBackNow(name);
      if (round % 25 === 0) this.takeOver(name, this.#any());
    }
  }
}
