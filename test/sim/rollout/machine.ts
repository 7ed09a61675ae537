import { judgeOrder, rememberOrder } from "#rollout/node-fence.ts";
import { workStates, type Failure, type Fence, type Report } from "#rollout/records.ts";
import type { Random } from "../random.ts";
import type { Scheduler } from "../scheduler.ts";
import { first, versionOf } from "./targets.ts";
import { downStates, memoryFor, type Memory, type SimOrder, type State } from "./memory.ts";
import type { RolloutSwarm } from "./swarm.ts";

export interface MachineEvents {
  /** Its memory is about to change by an order, or it begins or ends something. */
  accepted(machine: Machine, order: SimOrder, before: Fence | undefined): void;
  changed(machine: Machine): void;
  said(machine: Machine): void;
}

/** A node: a model of what its updater does with an order, with the real fence before it. */
export class Machine {
  readonly id: string;
  readonly #scheduler: Scheduler;
  readonly #random: Random;
  readonly #swarm: RolloutSwarm;
  readonly #events: MachineEvents;
  /** What it runs. */
  present = first;
  memory: Memory | undefined;
  isUp = true;
  /** It never comes back. */
  isDead = false;
  /** When it was last up, ms. */
  lastUp = 0;
  /** Its profile is being switched: it is on neither generation. */
  isBetween = false;
  isHealed = false;
  /** Changes when something else is begun, or its power fails. */
  #task = 0;
  /** The update that brought it where it is. */
  movedBy = "";

  constructor(
    id: string,
    parts: {
      readonly scheduler: Scheduler;
      readonly random: Random;
      readonly swarm: RolloutSwarm;
      readonly events: MachineEvents;
    },
  ) {
    this.id = id;
    this.#scheduler = parts.scheduler;
    this.#random = parts.random;
    this.#swarm = parts.swarm;
    this.#events = parts.events;
  }

  get isBusy(): boolean {
    return this.memory !== undefined && workStates.has(this.memory.state);
  }

  /** Down because of an order, or about to be. */
  get isDownByOrder(): boolean {
    return this.memory !== undefined && downStates.has(this.memory.state);
  }

  /** Whether an order would still take it down. */
  wouldGoDown({ fence, step }: Pick<SimOrder, "fence" | "step">): boolean {
    const { memory } = this;
    if (!memory || !judgeOrder({ ...memory.remembered, isBusy: this.isBusy }, fence).accept) return false;
    return step === "activate" ? memory.state === "prepared" : step === "roll_back" && this.#canGoBack;
  }

  /** Whether it would take an order now. */
  wouldTake(fence: Fence): boolean {
    const { memory, isUp, isDead } = this;
    return isUp && !isDead && judgeOrder(memory && { ...memory.remembered, isBusy: this.isBusy }, fence).accept;
  }

  get #canGoBack(): boolean {
    return this.memory?.previous !== undefined && this.present === this.memory.target;
  }

  /** Takes an order that arrived, if it is for it. */
  take(order: SimOrder): void {
    const { memory } = this;
    const verdict = judgeOrder(memory && { ...memory.remembered, isBusy: this.isBusy }, order.fence);
    if (!verdict.accept) return;
    this.#events.accepted(this, order, memory?.remembered.fence);
    // The fence and what it begins are one durable write.
    this.#write({
      ...memoryFor(memory, order),
      remembered: rememberOrder(memory && { ...memory.remembered, isBusy: false }, order.fence),
    });
    if (order.step === "prepare") this.#prepare();
    if (order.step === "activate") this.#activate();
    if (order.step === "roll_back") this.#rollBack();
    this.#events.said(this);
  }

  #write(next: Omit<Memory, "count"> & { readonly count?: number }): void {
    this.memory = { ...next, count: (this.memory?.count ?? 0) + 1 };
    this.#events.changed(this);
  }

  #to(state: State, more: Partial<Memory> = {}): void {
    if (this.memory) this.#write({ ...this.memory, state, ...more });
  }

  #later(ms: number, run: () => void): void {
    const task = this.#task;
    const slow = this.#swarm.slowNodes && !this.isHealed && this.#random.chance(0.2) ? this.#random.between(1, 12) : 1;
    this.#scheduler.after(ms * slow, () => {
      if (this.#task === task && !this.isDead) run();
    });
  }

  #prepare(): void {
    const state = this.memory?.state;
    if (state === "fenced" || state === "failed") {
      this.#to("preparing");
      this.#work();
    }
  }

  #activate(): void {
    const state = this.memory?.state;
    if (state === "prepared") {
      this.#to("activating", { previous: this.present });
      this.#work();
    } else if (state === "fenced" || state === "failed")
      this.#to("failed", { failure: { kind: "refused", message: "it is not prepared" } });
  }

  #rollBack(): void {
    const state = this.memory?.state;
    if (state === "activating" || state === "rebooting") return this.#to(state, { isBackOwed: true });
    if (state === "rolling_back") return;
    if (this.present !== this.memory?.target) return this.#to("rolled_back");
    if (!this.#canGoBack)
      return this.#to("failed", { failure: { kind: "rollback", message: "it does not know what it ran before" } });
    this.#to("rolling_back");
    this.#work();
  }

  /** What it has begun, from the beginning: also after a crash. */
  #work(): void {
    this.#task++;
    const random = this.#random;
    switch (this.memory?.state) {
      case "preparing":
        return this.#later(random.between(1_000, 20_000), () => this.#prepared());
      case "activating":
        return this.#later(random.between(500, 3_000), () => this.#switch());
      case "rebooting":
        return this.#later(random.between(500, 2_000), () => this.#reboot());
      case "rolling_back":
        return this.#later(random.between(500, 3_000), () => this.#switchBack());
      default:
    }
  }

  #prepared(): void {
    const isBad = !this.isHealed && this.#random.chance(this.#swarm.bad / 4);
    if (isBad) this.#to("failed", { failure: { kind: "build", message: "no room" } });
    else this.#to("prepared");
    this.#events.said(this);
  }

  #switch(): void {
    if (this.present === this.memory?.target) return this.#confirm();
    this.#goDown();
    if (!this.isHealed && this.#random.chance(this.#swarm.deadly)) return this.#die();
    this.isBetween = true;
    this.#later(this.#random.between(3_000, 40_000), () => {
      this.isBetween = false;
      if (!this.isHealed && this.#random.chance(this.#swarm.bad)) return this.#undo("the daemons did not start");
      this.#runs(this.memory?.target);
      if (this.#random.chance(0.2)) {
        this.#to("rebooting");
        this.#work();
      } else this.#comeUp();
    });
  }

  #reboot(): void {
    this.#goDown();
    this.#later(this.#random.between(10_000, 60_000), () => this.#comeUp());
  }

  #comeUp(): void {
    this.#setUp();
    this.#confirm();
  }

  /** It is on the target, and goes back by itself unless it speaks with a controller in time. */
  #confirm(): void {
    this.#events.said(this);
    this.#later(60_000, () => {
      if (this.memory && (this.memory.state === "activating" || this.memory.state === "rebooting"))
        this.#undo("it reached no controller");
    });
  }

  /** A controller answered. */
  spoke(): void {
    const { memory } = this;
    const isWaiting = memory?.state === "activating" || memory?.state === "rebooting";
    if (!isWaiting || !this.isUp || this.present !== memory.target || this.isBetween) return;
    this.#ended("activated");
  }

  #undo(message: string): void {
    this.isBetween = false;
    this.#runs(this.memory?.previous);
    this.#setUp();
    this.#ended("failed", { kind: "service", message });
  }

  #ended(state: "activated" | "failed", failure?: Failure): void {
    this.#task++;
    if (this.memory?.isBackOwed) {
      const { isBackOwed: _, ...memory } = this.memory;
      this.memory = memory;
      this.#to(this.#canGoBack ? "rolling_back" : "rolled_back");
      this.#work();
    } else this.#to(state, failure ? { failure } : {});
    this.#events.said(this);
  }

  #switchBack(): void {
    this.#goDown();
    this.isBetween = true;
    this.#later(this.#random.between(3_000, 30_000), () => {
      this.isBetween = false;
      this.#runs(this.memory?.previous);
      this.#setUp();
      this.#to("rolled_back");
      this.#events.said(this);
    });
  }

  #runs(id = this.present): void {
    this.present = id;
    this.movedBy = this.memory?.remembered.fence.name ?? "";
  }

  #goDown(): void {
    if (this.isUp) this.lastUp = this.#scheduler.now;
    this.isUp = false;
    this.#events.changed(this);
  }

  #setUp(): void {
    this.isUp = true;
    this.#events.changed(this);
  }

  #die(): void {
    this.isDead = true;
    this.#events.changed(this);
  }

  /** Its power fails; it comes back after a while and goes on with what it had begun. */
  crash(ms: number): void {
    if (this.isDead) return;
    this.#goDown();
    this.#task++;
    this.#scheduler.after(ms, () => this.start());
  }

  start(): void {
    if (this.isDead || this.isUp) return;
    this.#task++;
    this.isBetween = false;
    this.#setUp();
    this.#work();
    this.#events.said(this);
  }

  report(): Report | undefined {
    const { memory } = this;
    if (!memory) return undefined;
    const { previous, failure, state, count, remembered } = memory;
    return {
      epoch: count,
      fence: remembered.fence,
      state,
      present: { id: this.present, version: versionOf(this.present), generation: 1 },
      ...(previous === undefined ? {} : { previous: { id: previous, version: versionOf(previous) } }),
      ...(state === "failed" && failure ? { failure } : {}),
      at: this.#scheduler.now,
    };
  }
}
