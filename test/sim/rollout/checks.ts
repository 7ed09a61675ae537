import type { KeyChange } from "#controller/replica/replica.ts";
import { fenceOf, stepOf, type Order, type OrderStep } from "#rollout/order.ts";
import {
  hasEnded,
  type FencingToken,
  type HookAnswer,
  type Owner,
  type RolloutProgress,
  type NodeAssignment,
} from "#rollout/records.ts";
import { names, staleAfter, type Changes, type SimController } from "./controller.ts";
import type { Machine } from "./machine.ts";
import type { RolloutWorld } from "./world.ts";

/** Milliseconds beyond staleAfter after which a silent node counts as down. */
const slackMs = 60_000;
const neverInterrupted: ReadonlySet<string> = new Set(["activating", "rebooting", "verifying", "rolling_back"]);

/** The invariants of every moment, stated a second time without use of the code under test. */
export class Checks {
  readonly #world: RolloutWorld;
  /** The last order that a node took, by node and update. */
  readonly #taken = new Map<string, FencingToken>();
  /** The orders that became durable at their owner. */
  readonly #durable = new Set<string>();
  /** The manifests that a node has prepared, by node, update and generation. */
  readonly #prepared = new Set<string>();
  /** The owners that the bastion signed, by update and epoch. */
  readonly #signed = new Set<string>();
  /** The epochs of records, by controller and key. */
  readonly #epochs = new Map<string, number>();
  /** Updates whose rollback may take more nodes down. */
  readonly isForced = new Set<string>();
  #isDirty = false;

  constructor(world: RolloutWorld) {
    this.#world = world;
  }

  /** (a) A node takes no order of an older epoch, nor of another owner in the same epoch. While busy, it takes no order of another manifest. */
  accepted(machine: Machine, { fence, step }: Order, before: FencingToken | undefined): void {
    this.#owned(machine.id, fence.name, fence);
    if (!this.#durable.has(orderOf(machine.id, step, fence)))
      this.#world.violate(
        `(f) ${machine.id} took ${describeOrder(fence)} to ${step}, which its owner had not written yet`,
      );
    const isSame = before?.name === fence.name && before.generation === fence.generation;
    // Another update's work on the node does not undo the node's preparation for this one.
    if (step === "activate" && !this.#prepared.has(manifestOf(machine.id, fence)))
      this.#world.violate(
        `(f) ${machine.id} was ordered to activate what it has not prepared: ${describeOrder(fence)}`,
      );
    this.#world.hooks.accepted(machine, { fence, step });
    const key = `${machine.id} ${fence.name}`;
    const last = this.#taken.get(key);
    if (last && isOver(fence, last))
      this.#world.violate(`(a) ${machine.id} took ${describeOrder(fence)} after ${describeOrder(last)}`);
    if (last && fence.epoch === last.epoch && fence.seq <= last.seq)
      this.#world.violate(`(a) ${machine.id} took ${describeOrder(fence)} again, after ${describeOrder(last)}`);
    if (machine.isBusy && before && !isSame)
      this.#world.violate(
        `(a) ${machine.id} took ${describeOrder(fence)} while it was busy with ${describeOrder(before)}`,
      );
    this.#taken.set(key, fence);
  }

  /** (g) An order that a busy node refused is sent again, once the node has a new report. */
  asked(machine: Machine, known: FencingToken | undefined): void {
    if (known && machine.wouldTake(known))
      this.#world.violate(`(g) ${machine.id} would take ${describeOrder(known)}, and its agent does not ask for it`);
  }

  /** (l) A controller's registers of an update never go back to an earlier epoch. */
  changed(controller: Pick<SimController, "id" | "value">, key: string): void {
    if (key.includes("/node/")) this.#isDirty = true;
    if (!/^update\/[^/]+\/(?:owner|progress|node|report)/.test(key)) return;
    const { id } = controller;
    const value = controller.value(key);
    if (value === null) return;
    const { epoch } = value as { readonly epoch: number };
    const last = this.#epochs.get(`${id} ${key}`) ?? 0;
    if (epoch < last) this.#world.violate(`(l) ${id} held ${key} of epoch ${last}, and holds that of ${epoch} now`);
    this.#epochs.set(`${id} ${key}`, epoch);
  }

  /** (f) An order leaves a controller only after its owner's write. */
  orderSent(id: string, { fence, step }: Order): void {
    if (!this.#durable.has(orderOf(id, step, fence)))
      this.#world.violate(`(f) ${id} is sent ${describeOrder(fence)} to ${step}, which its owner had not written yet`);
    this.#isDirty = true;
  }

  nodeChanged({ id, journal: { report } = {} as Machine["journal"] & object }: Machine): void {
    if (report?.state === "prepared") this.#prepared.add(manifestOf(id, report.fence));
    this.#isDirty = true;
  }

  /** Checks the numbers of nodes that are down; called after each event. */
  checkNow(): void {
    if (!this.#isDirty) return;
    this.#isDirty = false;
    for (const name of this.#world.begun) {
      if (this.isForced.has(name)) continue;
      const down = this.#downBy(name);
      const max = this.#world.maxUnavailable;
      if (down.length > max)
        this.#world.violate(`(b) ${name}: ${down.join(", ")} are down or may be, and ${max} may be`);
      const controllers = down.filter((id) => this.#world.isController(id));
      if (controllers.length > 1)
        this.#world.violate(`(d) ${name}: the controllers ${controllers.join(", ")} are under way`);
    }
  }

  /** The nodes that an order of this update took down, or would take down now: a controller's order, or one on its way. */
  #downBy(name: string): readonly string[] {
    return this.#world.machines.flatMap((machine) => {
      const isBy = machine.downBy === name;
      return isBy || this.#mayGoDown(machine, name) ? [machine.id] : [];
    });
  }

  #mayGoDown(machine: Machine, name: string): boolean {
    if (machine.accepted === undefined) return false;
    for (const order of this.#world.underWay.get(machine.id) ?? [])
      if (order.fence.name === name && machine.wouldGoDown(order)) return true;
    return this.#world.controllers.some((controller) => {
      const row = controller.of(name).rows.get(machine.id);
      const step = row && stepOf(row.phase);
      if (!row || (step !== "activate" && step !== "roll_back")) return false;
      return machine.wouldGoDown({ fence: fenceOf(name, row), step });
    });
  }

  /** Checks an owner's changes before they are durable. */
  committing(controller: SimController, changes: Changes): void {
    for (const [key, value] of changes) {
      const [, name = "", what = "", id = "", hook = ""] = key.split("/");
      if (what === "removed") this.#removed(controller, name);
      if (value === null) continue;
      if (what === "owner") this.#owned(controller.id, name, value as Owner);
      if (what === "hook") {
        const hookName = decodeURIComponent(hook);
        this.#world.hooks.answered(controller, { name, id, hook: hookName, answer: value as HookAnswer });
      }
      if (what !== "node") continue;
      const row = value as NodeAssignment;
      this.#ordered(controller, name, id, row);
      this.#world.hooks.committing(controller, name, row, id, controller.of(name).rows.get(id));
      this.#durable.add(orderOf(id, stepOf(row.phase), fenceOf(name, row)));
    }
  }

  /**
   * (r) The owner of an update accepts its manifest, and (s) removes it, as far as the controller knows when it writes: before the write is
   * durable, the journal can bring another owner.
   */
  writing(controller: SimController, changes: readonly KeyChange[]): void {
    for (const { key, value } of changes) {
      const [, name = "", what = ""] = key.split("/");
      const { owner } = controller.of(name);
      if (!owner || owner.owner === controller.id) continue;
      if (what === "head" && value !== null)
        this.#world.violate(`(r) ${controller.id} takes a manifest of ${name}, which ${owner.owner} owns`);
      if (what === "removed") this.#world.violate(`(s) ${controller.id} removes ${name}, which ${owner.owner} owns`);
    }
  }

  /**
   * (s) Only a finished update is removed. No node may be down or drained by it, or run a version that only it records.
   */
  #removed(controller: SimController, name: string): void {
    const { progress, rows, head } = controller.of(name);
    const refuse = (why: string): never => this.#world.violate(`(s) ${controller.id} removes ${name}, ${why}`);
    if (!progress || progress.generation !== head?.generation || !hasEnded(progress.phase))
      refuse(`which is ${progress?.phase}`);
    for (const [id, row] of rows) {
      const { accepted, downBy, present, system, isDead } = this.#world.machine(id);
      if (isDead) continue;
      if (downBy === name && accepted && !isOver(accepted.fence, row)) refuse(`by which ${id} is down`);
      const isTold = names.some((other) => other !== name && controller.of(other).rows.get(id)?.phase === "succeeded");
      if (row.phase === "succeeded" && system.movedBy === name && present === head?.target && !isTold)
        refuse(`by which alone it knows what ${id} runs`);
    }
    this.#world.hooks.atEnd(controller, name);
    this.#world.removed.set(name, controller.id);
    this.#world.figures.removed++;
  }

  signed(name: string, { epoch, owner }: Owner): void {
    this.#signed.add(`${name} ${epoch} ${owner}`);
  }

  #isSigned(name: string, { epoch, owner }: Owner): boolean {
    return this.#signed.has(`${name} ${epoch} ${owner}`);
  }

  /** (t) The bastion alone makes owners: controllers write, and nodes obey, only signed ones. */
  #owned(who: string, name: string, { epoch, owner }: Owner): void {
    if (!this.#isSigned(name, { epoch, owner }))
      this.#world.violate(`(t) ${who} takes ${owner} for the owner of ${name} in epoch ${epoch}: that was not signed`);
  }

  #ordered(controller: SimController, name: string, id: string, row: NodeAssignment): void {
    const records = controller.of(name);
    const before = records.rows.get(id);
    const isOwn = before?.epoch === row.epoch && before.owner === row.owner && before.generation === row.generation;
    if (isOwn && row.phase === "cancelled" && neverInterrupted.has(before.phase))
      this.#world.violate(`(e) ${controller.id} called off ${id}, which was ${before.phase}`);
    const isStart =
      isOwn &&
      ((before.phase === "pending" && row.phase === "preparing") ||
        (before.phase === "prepared" && (row.phase === "draining" || row.phase === "activating")));
    if (isStart) {
      const failed = [...records.rows].find(
        ([, other]) => other.generation === row.generation && other.phase === "failed",
      );
      if (failed) this.#world.violate(`(f) ${controller.id} starts ${id} though ${failed[0]} failed`);
      this.#lockstep(controller, name, id, row);
    }
    if (isStart && row.phase !== "preparing") this.#counted(name, id, row);
    if (isOwn && row.phase === "rolling_back" && (before.phase === "succeeded" || before.phase === "failed")) {
      this.#counted(name, id, row);
      // Another owner had ordered the rollback that this one continues.
      if (records.reports.get(id)?.state !== "rolling_back") this.#reversed(controller, name, id);
    }
  }

  /**
   * (b) The nodes that an update has down and the nodes that are silent for long stay within the limit together. Orders of a former owner do not
   * count for a node that obeys the new owner: they take no node down.
   */
  #counted(name: string, id: string, row: NodeAssignment): void {
    const last = this.#taken.get(`${id} ${name}`);
    if (this.isForced.has(name) || (last && isOver(row, last))) return;
    const { machines, scheduler, maxUnavailable } = this.#world;
    const silent = machines.filter(({ isUp, lastUp }) => !isUp && scheduler.now - lastUp > staleAfter + slackMs);
    const ids = new Set([...this.#downBy(name), ...silent.map((machine) => machine.id), id]);
    const selected = [...ids].filter((other) => this.#world.isSelected(other));
    if (selected.length > maxUnavailable)
      this.#world.violate(`(b) ${name}: ${id} goes down, with ${selected.join(", ")}, and ${maxUnavailable} may be`);
  }

  /** A group begins when the one before is done; groups behind the canaries wait for promotion. */
  #lockstep(controller: SimController, name: string, id: string, { epoch, owner }: NodeAssignment): void {
    const { progress, rows } = controller.of(name);
    const at = progress?.waves.findIndex((wave) => wave.includes(id)) ?? -1;
    // Another owner of the same epoch may have overwritten the row at the same time.
    const isOpen = (row: NodeAssignment | undefined): boolean =>
      row?.phase !== "succeeded" && !(row?.epoch === epoch && row.owner !== owner);
    const open =
      progress?.waves
        .slice(0, at)
        .flat()
        .filter((other) => isOpen(rows.get(other))) ?? [];
    if (open.length > 0) this.#world.violate(`(f) ${controller.id} starts ${id} before ${open.join(", ")} succeeded`);
    if (
      progress &&
      progress.canaries > 0 &&
      at >= progress.canaries &&
      !this.#world.promoted.has(`${name} ${progress.generation}`)
    )
      this.#world.violate(`(f) ${controller.id} starts ${id} though nobody promoted the canaries`);
  }

  /** Nodes go back in reverse order of their start. */
  #reversed(controller: SimController, name: string, id: string): void {
    const { progress, rows } = controller.of(name);
    const started = (progress as RolloutProgress).started;
    const later = started.slice(started.indexOf(id) + 1).filter((other) => rows.get(other)?.phase === "succeeded");
    const batch = this.#world.maxUnavailable;
    if (later.length >= batch) this.#world.violate(`(f) ${controller.id} takes ${id} back before ${later.join(", ")}`);
  }
}

type Ordered = Pick<FencingToken, "epoch" | "owner" | "generation">;

/** Whether a node will always refuse an order, given the last one that it took: for an older epoch, another owner, or an older manifest. */
function isOver({ epoch, owner, generation }: Ordered, last: Ordered): boolean {
  return epoch < last.epoch || (epoch === last.epoch && owner !== last.owner) || generation < last.generation;
}

function orderOf(id: string, step: OrderStep, { name, epoch, owner, generation, seq }: FencingToken): string {
  return [id, step, name, epoch, owner, generation, seq].join(" ");
}

function manifestOf(id: string, { name, generation }: FencingToken): string {
  return `${id} ${name} ${generation}`;
}

function describeOrder({ name, epoch, owner, generation, seq }: FencingToken): string {
  return `order ${seq} of ${owner} in epoch ${epoch} of ${name} (generation ${generation})`;
}
