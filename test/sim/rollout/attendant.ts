import { lookAtHooks } from "#rollout/hooks.ts";
import type { Row } from "#rollout/records.ts";
import { latestWord } from "../../../src/cli/update/latest-word.ts";
import type { RolloutWorld } from "./world.ts";

/** What a controller says of a node: its row, and what the bastion shall do for it. */
export interface Asked {
  readonly id: string;
  readonly row: Row;
  readonly hook?: string | undefined;
  /** Whose rollout it was when it was asked. */
  readonly owner: { readonly id: string; readonly epoch: number };
}

interface Task extends Asked {
  readonly hook: string;
}

const bastion = "b";

/**
 * The process on the bastion that attends to one update, as src/cli/update/attendant.ts does: it looks how the update stands, does what is asked
 * for, each once and one at a time for a node, ends what is not asked for any more, and answers until somebody has taken that. It may be slow,
 * and die, and the next one knows nothing.
 */
export class Attendant {
  readonly #world: RolloutWorld;
  readonly #name: string;
  #isUp = true;
  /** Changes with each process, and with each question. */
  #question = 0;
  #begun = new Set<string>();
  #running = new Map<string, Task>();
  #latest = latestWord();

  constructor(world: RolloutWorld, name: string) {
    this.#world = world;
    this.#name = name;
  }

  crash(ms: number): void {
    this.#isUp = false;
    this.#question++;
    this.#begun = new Set();
    this.#running = new Map();
    this.#latest = latestWord();
    this.#world.scheduler.after(ms, () => (this.#isUp = true));
  }

  /** One controller or another is asked; an answer to a former question is nobody's. */
  look(): void {
    if (!this.#isUp || !this.#world.begun.has(this.#name)) return;
    const question = ++this.#question;
    const controller = this.#world.random.pick(this.#world.controllers);
    this.#world.send(bastion, controller.id, () => {
      const view = controller.isUp ? controller.viewOf(this.#name) : undefined;
      if (!view) return;
      const {
        generation,
        owner: { owner: id, epoch },
      } = view;
      const rows = [...view.rows].filter(([, row]) => row.generation === generation);
      const asked = rows.map(([node, row]): Asked => ({
        id: node,
        row,
        hook: lookAtHooks(view, node, row).next,
        owner: { id, epoch },
      }));
      this.#world.send(controller.id, bastion, () => {
        if (question === this.#question && this.#latest.isLatest({ generation, owner: { id, epoch } }))
          this.#told(asked);
      });
    });
  }

  #told(all: readonly Asked[]): void {
    const nodes = all.filter(({ id, row: { seq } }) => this.#latest.isLatestOf({ id, seq }));
    const isNew = (asked: Asked): asked is Task => asked.hook !== undefined && !this.#begun.has(keyOf(asked));
    for (const asked of nodes) {
      const task = this.#running.get(asked.id);
      if (!task || !isPast(task, asked, isNew(asked))) continue;
      this.#running.delete(asked.id);
      this.#begun.delete(keyOf(task));
    }
    for (const asked of nodes.filter(isNew)) {
      if (this.#running.size >= this.#world.maxUnavailable) break;
      if (!this.#running.has(asked.id)) this.#run(asked);
    }
  }

  #run(task: Task): void {
    const { random, swarm, scheduler, isHealed, hooks } = this.#world;
    const limit = task.hook.startsWith("gate") ? 30_000 : 60_000;
    const ms = !isHealed && random.chance(0.1) ? random.between(20_000, 90_000) : random.between(500, 15_000);
    const isOk = ms < limit && (isHealed || !random.chance(swarm.badHooks));
    this.#begun.add(keyOf(task));
    this.#running.set(task.id, task);
    hooks.begun(this.#name, task);
    scheduler.after(Math.min(ms, limit), () => {
      if (this.#running.get(task.id) !== task) return;
      hooks.ended(this.#name, task, isOk);
      this.#answer(task, isOk);
    });
  }

  #answer(task: Task, ok: boolean): void {
    const isAnswered = (): boolean => this.#running.get(task.id) !== task;
    if (isAnswered()) return;
    const { row, id, hook, owner } = task;
    const controller = this.#world.random.pick(this.#world.controllers);
    this.#world.send(bastion, controller.id, () => {
      if (!controller.isUp) return;
      controller.answer(this.#name, { node: id, hook, generation: row.generation, seq: row.seq, owner, ok });
      this.#world.send(controller.id, bastion, () => {
        if (!isAnswered()) this.#running.delete(id);
      });
    });
    this.#world.scheduler.after(5_000, () => this.#answer(task, ok));
  }
}

function keyOf({ id, row, hook }: Asked): string {
  return `${row.generation} ${id} ${row.seq} ${hook}`;
}

function isPast({ hook, row: { generation, seq } }: Task, present: Asked, isNew: boolean): boolean {
  const { row } = present;
  if (row.generation !== generation) return row.generation > generation;
  return row.seq === seq ? isNew && present.hook !== hook : row.seq > seq;
}
