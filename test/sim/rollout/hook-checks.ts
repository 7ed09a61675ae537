import type { Order } from "#rollout/order.ts";
import type { HookAnswer, NodeAssignment } from "#rollout/records.ts";
import { isStuck } from "#rollout/hooks.ts";
import type { HookTask } from "./sim-hook-runner.ts";
import type { SimController } from "./controller.ts";
import type { Machine } from "./machine.ts";
import type { RolloutWorld } from "./world.ts";

/** The hooks that really ran on the bastion, and their invariants. */
export class HookChecks {
  readonly #world: RolloutWorld;
  /** The hooks that succeeded, by request. */
  readonly #done = new Set<string>();
  /** The end of each hook that ran, by request. */
  readonly #ends = new Set<string>();
  /** Nodes whose work is taken away, wholly or in part, by update and node. */
  readonly #drained = new Set<string>();

  constructor(world: RolloutWorld) {
    this.#world = world;
  }

  begun(name: string, task: HookTask): void {
    // A new process may ask a controller that is cut off, and so run a drain that is over: such a one does not count.
    if (task.hook === "drain" && !this.#isOver(name, task)) this.#drained.add(`${name} ${task.id}`);
  }

  /** Whether a controller has a later row of the node. */
  #isOver(name: string, { id, generation, epoch, seq }: HookTask): boolean {
    return this.#world.controllers.some((controller) => {
      const known = controller.of(name).rows.get(id);
      if (!known || known.generation !== generation) return (known?.generation ?? 0) > generation;
      return known.epoch === epoch ? known.seq > seq : known.epoch > epoch;
    });
  }

  ended(name: string, task: HookTask, isOk: boolean): void {
    this.#world.figures.hooks++;
    this.#ends.add(`${rowKey(name, task.id, task, task.hook)} ${isOk}`);
    if (!isOk) return;
    const { id, hook, generation } = task;
    if (hook === "drain") this.#done.add(`${name} ${id} ${generation} drain`);
    else this.#done.add(rowKey(name, id, task, hook));
    if (hook === "undrain") this.#drained.delete(`${name} ${id}`);
  }

  /**
   * (q) A controller notes an answer unchanged, and only for the row that requested the hook; of two answers the first counts. Only an undrain
   * that failed may have a second answer.
   */
  answered(
    controller: SimController,
    {
      name,
      id,
      hook,
      answer,
    }: { readonly name: string; readonly id: string; readonly hook: string; readonly answer: HookAnswer },
  ): void {
    const row = rowKey(name, id, answer, hook);
    const description = `${hook} of ${id} for order ${answer.seq} of ${answer.owner} in epoch ${answer.epoch} of ${name}`;
    if (!this.#ends.has(`${row} ${answer.ok}`))
      this.#world.violate(
        `(q) ${controller.id} notes ${description} as ${answer.ok ? "done" : "failed"}, as no bastion said`,
      );
    const before = controller.of(name).answers.get(`${id}/${hook}`);
    if (!before || rowKey(name, id, before, hook) !== row || before.ok === answer.ok) return;
    if (before.ok || hook !== "undrain")
      this.#world.violate(`(q) ${controller.id} takes another answer to ${description}`);
  }

  /** (i) Only a drained node is activated. */
  accepted({ id }: Machine, { step, fence }: Pick<Order, "step" | "fence">): void {
    const { swarm } = this.#world;
    if (swarm.hooks && step === "activate" && !this.#done.has(`${fence.name} ${id} ${fence.generation} drain`))
      this.#world.violate(`(i) ${id} is to be activated by generation ${fence.generation} of ${fence.name}, undrained`);
  }

  /** (j) A node succeeds only if its gate has held since the activation. After a failure no further node is started. */
  committing(controller: SimController, name: string, row: NodeAssignment, id: string, before?: NodeAssignment): void {
    if (!this.#world.swarm.gates || !before) return;
    if (before.phase === "verifying" && row.phase === "succeeded" && !this.#done.has(rowKey(name, id, before, gate)))
      this.#world.violate(`(j) ${controller.id} says that ${id} succeeded by ${name}, and its gate did not hold`);
    if (row.phase !== "preparing" && row.phase !== "draining" && row.phase !== "activating") return;
    const { rows, answers } = controller.of(name);
    for (const [other, { generation, seq, phase }] of rows) {
      const answer = answers.get(`${other}/${gate}`);
      const isFailed = answer?.ok === false && answer.generation === generation && answer.seq === seq;
      if (phase === "verifying" && isFailed && generation === row.generation && row.seq === before.seq + 1)
        this.#world.violate(`(j) ${controller.id} starts ${id} by ${name} though a gate of ${other} failed`);
    }
  }

  /** (k) Every drained node has its work back, unless its former version does not run, or giving the work back failed. */
  atEnd(controller: SimController, name: string): void {
    const view = controller.inputOf(name);
    for (const { id, isDead, present, system } of this.#world.machines) {
      const row = view?.rows.get(id);
      if (!view || !row || isDead || !this.#drained.has(`${name} ${id}`) || row.generation !== view.generation)
        continue;
      const answer = view.answers.get(`${id}/undrain`);
      const isRefused = answer?.ok === false && answer.seq === row.seq && answer.generation === row.generation;
      // A version that another update brought since does not prove to this update that its failed version is gone.
      const mayRunTarget = present === view.target.id || system.movedBy !== name;
      const isLeft = row.phase === "failed" && (mayRunTarget || isStuck(view, id, row));
      if (!isRefused && !isLeft)
        this.#world.violate(`(k) ${id} is ${row.phase} by ${name}, and never got its work back`);
    }
  }
}

const gate = "gate web";

function rowKey(
  name: string,
  id: string,
  { generation, epoch, owner, seq }: Pick<NodeAssignment, "generation" | "epoch" | "owner" | "seq">,
  hook: string,
): string {
  return [name, id, generation, epoch, owner, seq, hook].join(" ");
}
