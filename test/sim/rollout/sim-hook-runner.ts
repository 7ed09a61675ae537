import type { ApiClient } from "#api/client.ts";
import { askUpdates, callForUpdate } from "../../../src/cli/update/ask-updates.ts";
import { createHookRunner, type HookRequest, type HookPorts, type HookRunner } from "#actions/hook-runner.ts";
import { endpointOf } from "./client.ts";
import type { RolloutWorld } from "./world.ts";

/** A hook of a node, and the order that requests it. */
export interface HookTask {
  readonly id: string;
  readonly hook: string;
  readonly generation: number;
  readonly epoch: number;
  readonly owner: string;
  readonly seq: number;
}

/**
 * The product's hook-runner of one update, on the bastion. It asks controllers over the simulated network, and its hooks take time and fail.
 * The process may be slow or die; the next process knows nothing.
 */
export class SimHookRunner {
  readonly #world: RolloutWorld;
  readonly #name: string;
  #isUp = true;
  /** The number of the present process. */
  #boot = 0;
  #question = 0;
  #runner: HookRunner;

  constructor(world: RolloutWorld, name: string) {
    this.#world = world;
    this.#name = name;
    this.#runner = this.#begin();
  }

  crash(ms: number): void {
    this.#isUp = false;
    this.#boot++;
    this.#runner = this.#begin();
    this.#world.scheduler.after(ms, () => (this.#isUp = true));
  }

  #begin(): HookRunner {
    const boot = this.#boot;
    const after = (ms: number, run: () => void): (() => void) =>
      this.#world.scheduler.after(ms, () => {
        if (boot === this.#boot) run();
      });
    return createHookRunner({
      run: (request) => this.#carryOut(request, after),
      answer: async (answer) => {
        const { random, swarm, isHealed } = this.#world;
        if (swarm.lateAnswers && !isHealed)
          await new Promise<void>((resolve) => after(random.between(0, 30_000), resolve));
        return this.#ask((client) => client.call("answerHook", answer, { id: this.#name }), boot);
      },
      mostAtOnce: ({ spec }) => spec.strategy.maxUnavailable,
      sleep: (ms, signal) =>
        new Promise<void>((resolve, reject) => {
          after(ms, resolve);
          if (signal) rejectOnAbort(signal, reject);
        }),
      say: () => undefined,
    });
  }

  #carryOut(
    { view, node, signal }: HookRequest,
    after: (ms: number, run: () => void) => void,
  ): ReturnType<HookPorts["run"]> {
    const { random, swarm, isHealed, hooks } = this.#world;
    const { id, hook = "", seq = 0 } = node;
    const { generation, owner } = view;
    const task: HookTask = { id, hook, generation, seq, epoch: owner.epoch, owner: owner.id };
    const limit = hook.startsWith("gate") ? 30_000 : 60_000;
    const ms = !isHealed && random.chance(0.1) ? random.between(20_000, 90_000) : random.between(500, 15_000);
    const ok = ms < limit && (isHealed || !random.chance(swarm.badHooks));
    hooks.begun(this.#name, task);
    if (swarm.lateAnswers && !isHealed && random.chance(0.3))
      after(random.between(0, ms), () => this.#world.operator.takeOverAny(this.#name));
    return new Promise((resolve, reject) => {
      after(Math.min(ms, limit), () => {
        if (signal.aborted) return;
        hooks.ended(this.#name, task, ok);
        resolve({ ok });
      });
      rejectOnAbort(signal, reject);
    });
  }

  /** Asks a random controller for hooks; the answer to an abandoned request is ignored. */
  poll(): void {
    if (!this.#isUp || !this.#world.begun.has(this.#name)) return;
    const question = ++this.#question;
    this.#ask((client) => callForUpdate(client, this.#name), this.#boot).then(
      (view) => {
        if (question === this.#question) this.#runner.startHooks(view);
      },
      () => undefined,
    );
  }

  /** Asks a random controller; the answer is dropped if the asking process has died. */
  #ask<Reply>(work: (client: ApiClient) => Promise<Reply>, boot: number): Promise<Reply> {
    const endpoints = [endpointOf(this.#world.random.pick(this.#world.controllers).id)];
    const asked = askUpdates(this.#world.operator.cluster, work, { endpoints });
    return new Promise((resolve, reject) => {
      asked.then(
        (reply) => boot === this.#boot && resolve(reply),
        (error: Error) => boot === this.#boot && reject(error),
      );
    });
  }
}

function rejectOnAbort(signal: AbortSignal, reject: (reason: Error) => void): void {
  signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
}
