import type { OrderStep, Order } from "#rollout/order.ts";
import type { Report } from "#rollout/records.ts";
import type { UpdateStatement } from "#rollout/spec.ts";
import type { StepUnderWay, Journal } from "#updater/journal.ts";
import type { UpdateStep } from "#updater/strategy.ts";
import type { Machine } from "./machine.ts";
import type { RolloutWorld } from "./world.ts";

/** The simulator's own observations of a node. */
interface Seen {
  /** The last accepted order. */
  order?: Order;
  /** The start of the step under way, and the node's version at that time. */
  work?: { readonly since: number; readonly ran: string };
  /** Whether the node has begun a rollback since its last order. */
  hasGoneBack: boolean;
  /** The last contact of its agent with a controller, and the node's version at that time. */
  contact?: { readonly at: number; readonly ran: string };
  gateHeldAt: number;
  /** The version before the last activation that held (`to`), and the update of that activation. */
  rollbackTarget?: { readonly name: string; readonly to: string };
  /** The highest epoch of its reports. */
  count: number;
}

/** The states of a report that answer each step. */
const answers: Readonly<Record<OrderStep, ReadonlySet<Report["state"]> | undefined>> = {
  fence: undefined,
  hold: undefined,
  prepare: new Set(["prepared", "failed"]),
  activate: new Set(["activated", "failed"]),
  roll_back: new Set(["rolled_back", "failed"]),
};

/** The invariants of one node (docs/cluster-reference.md, Updates on the node), judged by the simulated node's effects, not by its journal. */
export class NodeChecks {
  readonly #world: RolloutWorld;
  readonly #seen = new Map<string, Seen>();

  constructor(world: RolloutWorld) {
    this.#world = world;
  }

  #of({ id }: Machine): Seen {
    const seen = this.#seen.get(id) ?? { hasGoneBack: false, gateHeldAt: -Infinity, count: 0 };
    this.#seen.set(id, seen);
    return seen;
  }

  accepted(machine: Machine, order: Order): void {
    const { doing, next } = machine.journal ?? {};
    const why = (doing ?? next) ? undefined : this.whyNotAnswered(machine);
    if (why !== undefined) this.#world.violate(why);
    const seen = this.#of(machine);
    seen.order = order;
    seen.hasGoneBack = false;
  }

  spoke(machine: Machine): void {
    if (machine.isUp) this.#of(machine).contact = { at: this.#world.scheduler.now, ran: machine.present };
  }

  gateAsked(machine: Machine, holds: boolean): void {
    if (holds) this.#of(machine).gateHeldAt = this.#world.scheduler.now;
  }

  /** (m) Each step is in the journal, and systemd can continue it, before its first effect. */
  works(machine: Machine, step: UpdateStep, { name, signedAt }: UpdateStatement): void {
    if (step === "roll_back") this.#of(machine).hasGoneBack = true;
    const { doing } = machine.journal ?? {};
    const isWritten = doing?.statement.name === name && doing.statement.signedAt === signedAt;
    const isStep =
      doing?.step === step || (step === "roll_back" && doing?.step === "activate" && doing.stage === "back");
    if (!isWritten || !isStep)
      this.#world.violate(`(m) ${machine.id} begins to ${step} by ${name}, and its journal does not say so`);
    if (!machine.isMarked)
      this.#world.violate(
        `(m) ${machine.id} begins to ${step} by ${name}, and nothing goes on with it after a power cut`,
      );
  }

  /** (n) The results in a node's report are true. */
  wrote(machine: Machine, before: Journal | undefined, after: Journal): void {
    const seen = this.#of(machine);
    const { report } = after;
    const isNews = report !== undefined && report.epoch !== before?.report?.epoch;
    const ended = before?.doing && !after.doing ? before.doing : undefined;
    const isReplaced = after.fence?.seq !== before?.fence?.seq || after.fence?.name !== before?.fence?.name;
    const isOver = before?.next && !after.next && !after.doing && !before.doing && !isReplaced;
    const refused = isOver ? before.next : undefined;
    if (isNews && ended) this.#ended(machine, ended, report);
    if (isNews && refused) this.#answered(machine, refused, { report, last: before?.report });
    if (!before?.doing && after.doing) seen.work = { since: this.#world.scheduler.now, ran: machine.present };
  }

  #ended(machine: Machine, { step, statement }: StepUnderWay, report: Report): void {
    const { id, present, system } = machine;
    const { name, bundle } = statement;
    const target = bundle?.storePath ?? "";
    const seen = this.#of(machine);
    const { since = 0, ran = present } = seen.work ?? {};
    const lie = (why: string): never =>
      this.#world.violate(`(n) ${id} says that it is ${report.state} by ${name}, and ${why}`);
    switch (report.state) {
      case "prepared":
        if (!system.store.has(target)) lie(`${target} is not in its store`);
        break;
      case "activated":
        if (present !== target) lie(`runs ${present}, not ${target}`);
        if (!system.isWhole) lie("its next boot begins with something else");
        if (seen.contact?.ran !== target || seen.contact.at < since)
          lie("its agent has spoken with no controller since");
        if (statement.spec.healthGates.some(({ http }) => http) && seen.gateHeldAt < since)
          lie("its gate did not hold");
        if (ran !== target) seen.rollbackTarget = { name, to: ran };
        else if (seen.rollbackTarget?.name !== name) seen.rollbackTarget = { name, to: target };
        break;
      case "rolled_back":
        if (seen.rollbackTarget?.name === name && ran === target && present !== seen.rollbackTarget.to)
          lie(`runs ${present}, and ran ${seen.rollbackTarget.to} before`);
        if (seen.rollbackTarget?.name !== name && present !== ran)
          lie(`ran ${ran} before, which ${name} did not bring`);
        break;
      default:
        if (step === "activate") this.#failed(machine, statement, report);
        if (step === "roll_back") this.#notTaken(machine, statement);
    }
  }

  /** (n) A failed activation leaves the node as it was, or the node reports that it cannot go back. */
  #failed(machine: Machine, { name }: UpdateStatement, { failure }: Report): void {
    const seen = this.#of(machine);
    const { ran = machine.present } = seen.work ?? {};
    const isAsBefore = machine.present === ran && machine.system.isWhole;
    if (isAsBefore) return;
    if (failure?.stuck !== true)
      this.#world.violate(
        `(n) ${machine.id} failed by ${name}, and is not wholly on ${ran} again, which it ran before`,
      );
    seen.rollbackTarget = { name, to: ran };
  }

  /** (n) The version before an update is known until another update has held. */
  #notTaken(machine: Machine, { name, bundle }: UpdateStatement): void {
    const { rollbackTarget, hasGoneBack } = this.#of(machine);
    const isThere = machine.present === bundle?.storePath && rollbackTarget?.to !== machine.present;
    if (isThere && rollbackTarget?.name === name && !hasGoneBack)
      this.#world.violate(`(n) ${machine.id} does not know that it ran ${rollbackTarget.to} before ${name}`);
  }

  #answered(
    machine: Machine,
    { step, statement }: { readonly step: UpdateStep; readonly statement: UpdateStatement },
    { report, last }: { readonly report: Report; readonly last: Report | undefined },
  ): void {
    if (step === "roll_back" && report.state === "failed") this.#notTaken(machine, statement);
    if (report.state !== "failed" && report.state !== last?.state)
      this.#world.violate(`(n) ${machine.id} says that it is ${report.state} by ${statement.name}, and did nothing`);
  }

  /** (o) The epoch of a node's reports never goes back, in spite of its clock and its power. */
  said(machine: Machine, { epoch }: Report): void {
    const seen = this.#of(machine);
    if (epoch < seen.count)
      this.#world.violate(`(o) ${machine.id} counts ${epoch} words, and counted ${seen.count} before`);
    seen.count = epoch;
  }

  /**
   * (p) Each accepted order is carried out, in spite of interruptions. Returns the reason why the last one is not; undefined if it is.
   */
  whyNotAnswered(machine: Machine): string | undefined {
    const { order } = this.#of(machine);
    const { state = "" } = machine;
    const wanted = order && answers[order.step];
    if (!order || !wanted || wanted.has(state as Report["state"])) return undefined;
    return `(p) ${machine.id} is ${state}, and accepted an order to ${order.step} by ${order.fence.name}`;
  }
}
