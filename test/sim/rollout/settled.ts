import { decide } from "#rollout/decide.ts";
import { hookStateOf } from "#rollout/hooks.ts";
import { fenceOf } from "#rollout/order.ts";
import { hasEnded, workStates, type NodeAssignment } from "#rollout/records.ts";
import { isActive } from "#rollout/rollout-input.ts";
import { Violation } from "../violation.ts";
import { names, type HeldRecords, type SimController } from "./controller.ts";
import type { Machine } from "./machine.ts";
import type { RolloutWorld } from "./world.ts";

/** The reason why the world is not at rest yet; undefined if it is. */
export function whyNotSettled(world: RolloutWorld): string | undefined {
  const living = world.controllers.filter(({ id }) => !world.machine(id).isDead);
  const down = living.find(({ isUp }) => !isUp);
  if (down) return `(g) ${down.id} is down`;
  const [first, ...rest] = living;
  if (!first) return undefined;
  const text = first.text();
  for (const other of rest) if (other.text() !== text) return `(h) ${first.id} and ${other.id} hold different records`;
  for (const [name, by] of world.removed) {
    const left = first.keysOf(name).find((key) => !/^update\/[^/]+\/removed/.test(key));
    if (left !== undefined && !world.machine(by).isDead) return `(s) ${name} was removed, and ${left} is there`;
  }
  for (const machine of world.machines) {
    const why = whyNotAtRest(machine, first) ?? (machine.isDead ? undefined : world.nodes.whyNotAnswered(machine));
    if (why !== undefined) return why;
  }
  for (const name of world.begun) {
    const hook = hookOf(world, first, name);
    if (hook !== undefined) return `(g) ${name}: the bastion has not done ${hook}`;
    const why = whyNotEnded(world, first.of(name));
    if (why !== undefined) return `(g) ${name}: ${why}`;
  }
  return undefined;
}

/** A hook that the bastion must run, now or once its node is ready. After the faults every node gets ready, unless it is lost for good. */
function hookOf(world: RolloutWorld, controller: SimController, name: string): string | undefined {
  const view = controller.inputOf(name);
  for (const [id, row] of view?.rows ?? []) {
    if (row.generation !== view?.generation) continue;
    const { next, held } = hookStateOf(view, id, row);
    const hook = next ?? (world.machine(id).isDead ? undefined : held);
    if (hook !== undefined) return `${hook} of ${id}`;
  }
  return undefined;
}

/**
 * (c) The node is wholly on one generation, has nothing under way, and its report says so. Two differences are allowed:
 * - The node's last order was for a manifest that was replaced since. The report may then be an older one, but must not say that the node is at work.
 * - The node has only confirmed owners. The report may then lack the last confirmation: a new owner may have overwritten the row that asked for it.
 */
function whyNotAtRest(machine: Machine, controller: SimController): string | undefined {
  if (machine.isDead) return undefined;
  const { id, state, isBusy, isAtWork, isUp, accepted, system } = machine;
  const ownReport = machine.report();
  const isStuck = ownReport?.failure?.stuck === true || ownReport?.failure?.kind === "rollback";
  if (!isUp || isBusy || isAtWork || !(system.isWhole || isStuck))
    return `(c) ${id} is ${isUp ? "" : "down, "}${state}, and runs ${machine.present}`;
  if (!accepted) return undefined;
  const { name, generation } = accepted.fence;
  const { head, reports } = controller.of(name);
  const report = reports.get(id);
  if (head?.generation !== generation && report && workStates.has(report.state))
    return `(c) ${id} is ${state}, and its report of an earlier manifest says ${report.state}`;
  if (
    head?.generation === generation &&
    (report?.state !== state ||
      report?.present.id !== machine.present ||
      (state !== "fenced" && report?.epoch !== ownReport?.epoch))
  )
    return `(c) ${id} is ${state} on ${machine.present}, and its report says ${report?.state} on ${report?.present.id}`;
  return undefined;
}

function whyNotEnded(
  { machines, controllers }: RolloutWorld,
  { progress, rows, head, owner }: HeldRecords,
): string | undefined {
  if (!progress || progress.generation !== head?.generation) return "it never began";
  if (progress.owner !== owner?.owner) return "its owner did not take it up";
  const hasDead = machines.some(({ isDead }) => isDead);
  // Two owners of one epoch wait for a takeover, which an operator begins.
  const isWaited = progress.waits !== undefined && !progress.waits.includes("obeys");
  const isWaiting =
    hasDead &&
    (isWaited ||
      controllers.some(({ id }) => id === owner?.owner && machines.find((machine) => machine.id === id)?.isDead));
  if (!hasEnded(progress.phase))
    return isWaiting ? undefined : `it is ${progress.phase}, and waits for ${progress.waits}`;
  const busy = [...rows].find(([, row]) => row.generation === head.generation && isActive(row));
  return busy && !hasDead ? `it has ended, and ${busy[0]} is ${busy[1].phase}` : undefined;
}

/** The number of checks in a row at which an order may be undelivered, or a decision unwritten. */
const mostChecks = 6;

/** Finds deliverable orders that never reach their node, and decisions that are never written. */
export class Undone {
  readonly #world: RolloutWorld;
  #found = new Map<string, number>();

  constructor(world: RolloutWorld) {
    this.#world = world;
  }

  /** Called at equal distances after the faults. @throws Violation */
  check(): void {
    const { begun, machines } = this.#world;
    const found = new Map<string, number>();
    const count = (what: string): void => {
      const times = (this.#found.get(what) ?? 0) + 1;
      if (times > mostChecks) throw new Violation(`(g) ${what}`);
      found.set(what, times);
    };
    for (const name of begun) {
      const owner = this.#world.ownerOf(name);
      // An owner that is down, or whose clock went back, writes nothing until it restarts or its clock has caught up.
      if (owner && (!owner.isUp || owner.isReadOnly)) continue;
      const decision = owner && decisionOf(owner, name);
      if (decision !== undefined) count(`${name}: ${owner?.id} never writes what it decides: ${decision}`);
      const records = owner?.of(name);
      for (const machine of machines) {
        const row = records?.rows.get(machine.id);
        if (row?.epoch !== records?.owner?.epoch || row?.generation !== records?.head?.generation) continue;
        if (!row || !machine.wouldTake(fenceOf(name, row))) continue;
        if (this.#isHeld(machine, name)) continue;
        count(`${name}: ${machine.id} order ${row.seq} of epoch ${row.epoch} is never brought`);
      }
    }
    this.#found = found;
  }

  /** Whether another unfinished update has rows of the node: the two may have to wait for each other. */
  #isHeld(machine: Machine, name: string): boolean {
    const { begun, controllers } = this.#world;
    const others = [...begun].filter((other) => other !== name);
    return others.some((other) =>
      controllers.some((controller) => {
        const { progress, rows } = controller.of(other);
        return rows.has(machine.id) && !(progress && hasEnded(progress.phase));
      }),
    );
  }
}

/** The owner's next decision, in words; undefined if there is none. An ended update waits for no time, only for reports. */
function decisionOf(owner: SimController, name: string): string | undefined {
  const view = owner.inputOf(name);
  if (!view) return undefined;
  if (view.progress?.generation === view.generation && hasEnded(view.progress.phase)) return undefined;
  const { progress, rows } = decide(view);
  if (!progress && rows.size === 0) return undefined;
  const steps = [...rows].map(([id, { phase, seq }]) => `${id} ${phase} by order ${seq}`);
  return [...(progress ? [`${progress.phase}, waiting for ${progress.waits}`] : []), ...steps].join(", ");
}

/** The invariants at the end. */
export function atEnd(world: RolloutWorld): void {
  const why = whyNotSettled(world);
  if (why !== undefined) throw new Violation(why);
  const living = world.controllers.find(({ id }) => !world.machine(id).isDead);
  if (!living) return;
  for (const name of world.begun) world.hooks.atEnd(living, name);
  for (const name of names)
    for (const [id, row] of living.of(name).rows) {
      const machine = world.machine(id);
      if (!machine.isDead) compare(machine, { name, ...living.of(name) }, row);
    }
}

/** (c) A node's row shows its version. */
function compare(machine: Machine, records: HeldRecords & { readonly name: string }, row: NodeAssignment): void {
  const { name, head, requests } = records;
  // Another update may have changed the node since.
  const isOthers = machine.system.movedBy !== "" && machine.system.movedBy !== name;
  if (isOthers || row.generation !== head?.generation) return;
  const isOnTarget = machine.present === head.target;
  // A generation that was cancelled before it reached the node leaves the version of an earlier one.
  const isLeft = row.phase === "cancelled" && row.generation > 1 && requests.rollback?.generation !== row.generation;
  // A node reports to the update that it obeys. If another update took the node first, this update cannot know the result.
  const isTaken = machine.accepted?.fence.name !== name;
  const isUntold = row.phase === "cancelled" && isTaken && records.reports.get(machine.id)?.present.id !== head.target;
  const isRight = row.phase === "succeeded" ? isOnTarget : row.phase === "failed" || isLeft || isUntold || !isOnTarget;
  if (!isRight)
    throw new Violation(`(c) ${machine.id} runs ${machine.present}, and its row says ${row.phase} of ${head.target}`);
}
