import type { Batch } from "#engine/session/session-events.ts";

/** A command from the bastion to a model node. */
export type ModelCommand =
  | { readonly do: "runner"; readonly number: number; readonly batch: Batch }
  | { readonly do: "segment"; readonly number: number; readonly batch: Batch }
  | { readonly do: "blobs"; readonly names: readonly string[] }
  | { readonly do: "stop" | "abort" }
  | { readonly do: "fin"; readonly outcome: string };

/** The behaviour of a step on the model node. */
export interface ModelStep {
  readonly outcome: "ok" | "changed" | "failed";
  readonly needsBlob: boolean;
}

/** The bastion's end of a channel: frames in order, each with the offset in the journal after it. */
export class ModelFollower {
  readonly #node: ModelNode;
  readonly #said: string[];
  readonly #toldAt: number;
  #at: number;
  #isTold = false;
  /** Whether the run's end has passed: the node ignores later commands. */
  isOver = false;

  constructor(node: ModelNode, said: readonly string[], at: number) {
    this.#node = node;
    this.#said = [...said];
    this.#at = at;
    this.#toldAt = node.journal.length;
  }

  say(frame: string): void {
    this.#said.push(frame);
  }

  next(): { readonly frame: string; readonly offset: number } | undefined {
    const { journal, start } = this.#node;
    const first = this.#said[0];
    if (first !== undefined && (first !== "gone" || (this.#isTold && this.#at === journal.length)))
      return { frame: this.#said.shift() ?? "", offset: this.#at };
    if (this.isOver) return undefined;
    if (!this.#isTold && this.#at >= this.#toldAt) {
      this.#isTold = true;
      return { frame: "told", offset: this.#at };
    }
    const frame = journal[this.#at];
    if (frame === undefined) return undefined;
    this.#at += 1;
    this.isOver = this.#at > start && /^(bye|lock held) /.test(frame);
    return { frame, offset: this.#at };
  }
}

interface ModelRunner {
  readonly id: number;
  wants: number;
  isParting?: boolean;
  open:
    { readonly number: number; readonly batch: Batch; at: number; isStarted: boolean; isFailed: boolean } | undefined;
}

/** A node with the behaviour of follower.sh and runner.sh, without shells, files and time. */
export class ModelNode {
  readonly #steps: ReadonlyMap<string, ModelStep>;
  readonly #segments = new Map<number, Batch>();
  readonly #blobs = new Set<string>();
  readonly #inOrder = new Set<string>();
  #runners = 0;
  #request: "stop" | "abort" | undefined;
  #fin: string | undefined;
  readonly journal: string[] = [];
  /** Journal lines of earlier runners. */
  start = 0;
  boot = 1;
  runner: ModelRunner | undefined;
  follower: ModelFollower | undefined;
  isHeldByOther = false;
  /** Whether an applied step is about to boot the node. */
  willReboot = false;
  /** Whether another bastion resumed the run, which does not know whether a reboot belongs to the run. */
  wasTakenOver = false;
  /** Whether the node's processes hang. */
  isFrozen = false;
  /** The number of starts of each step. */
  readonly begun = new Map<string, number>();
  /** The number of interruptions of each step. */
  readonly cutOff = new Map<string, number>();

  constructor(steps: ReadonlyMap<string, ModelStep>) {
    this.#steps = steps;
  }

  attach(offset: number): ModelFollower {
    if (!this.runner) {
      this.#segments.clear();
      this.#request = this.#fin = undefined;
      this.start = this.journal.length;
    }
    const runner = `runner ${this.runner ? "alive" : "new"} ${this.start}`;
    this.follower = new ModelFollower(this, [`hello 1 0 boot-${this.boot} machine 0`, runner], offset);
    return this.follower;
  }

  take(command: ModelCommand): void {
    if (!this.follower || this.follower.isOver) return;
    switch (command.do) {
      case "runner":
        return this.#launch(command.number, command.batch);
      case "segment":
        return void this.#segments.set(command.number, command.batch);
      case "blobs":
        return command.names.forEach((name) => this.#blobs.add(name));
      case "fin":
        if (this.runner) this.#fin = command.outcome;
        else this.follower.say("gone");
        return;
      case "stop":
      case "abort":
        this.#request = command.do;
    }
  }

  /** The runner does one thing; false if it has nothing to do. */
  act(): boolean {
    const { runner } = this;
    if (!runner || this.isFrozen) return false;
    const { open } = runner;
    if (runner.isParting) {
      runner.isParting = false;
      if (!this.#request) return this.#end("done");
    }
    if (this.#fin !== undefined && !open?.isStarted) return this.#end(this.#fin);
    if (!open) return this.#openNext(runner);
    const step = open.batch.steps[open.at];
    if (!step || open.isFailed || (this.#request && !open.isStarted)) return this.#closeSegment(runner, open);
    const { key } = step;
    if (!open.isStarted) {
      // The lease: no step begins without a follower.
      if (!this.follower) return false;
      if (this.willReboot && !this.wasTakenOver)
        throw new Error("this does not hold: nothing begins while the node is about to boot");
      open.isStarted = true;
      this.begun.set(key, (this.begun.get(key) ?? 0) + 1);
      this.journal.push(`start ${key} `);
      if (this.#steps.get(key)?.needsBlob && !this.#blobs.has(key)) this.journal.push(`need ${key}`);
      return true;
    }
    if (this.#steps.get(key)?.needsBlob && !this.#blobs.has(key)) {
      if (this.#fin !== undefined) return this.#end(this.#fin);
      if (!this.#request) return false;
      open.isStarted = false;
      return true;
    }
    this.#finishStep(open, key);
    return true;
  }

  kill(): void {
    const open = this.runner?.open;
    const key = open?.isStarted ? open.batch.steps[open.at]?.key : undefined;
    if (key !== undefined) this.cutOff.set(key, (this.cutOff.get(key) ?? 0) + 1);
    if (this.runner && this.follower) this.follower.say("gone");
    this.runner = undefined;
  }

  reboot(): void {
    this.follower = undefined;
    this.kill();
    this.boot += 1;
    this.willReboot = false;
  }

  #launch(number: number, batch: Batch): void {
    if (this.runner) return;
    if (this.isHeldByOther) return void this.journal.push("lock held 1:1:boot:other:somebody 0");
    this.runner = { id: ++this.#runners, wants: number, open: undefined };
    this.#segments.set(number, batch);
    this.journal.push("lock mine");
  }

  #openNext(runner: ModelRunner): boolean {
    const batch = this.#segments.get(runner.wants);
    if (!batch) return false;
    runner.open = { number: runner.wants, batch, at: 0, isStarted: false, isFailed: false };
    this.journal.push(`segment ${runner.wants}`);
    return true;
  }

  #finishStep(open: NonNullable<ModelRunner["open"]>, key: string): void {
    const { outcome = "ok" } = this.#steps.get(key) ?? {};
    const now = this.#request === "abort" ? "interrupted" : this.#inOrder.has(key) ? "ok" : outcome;
    if (now === "changed") this.#inOrder.add(key);
    if (now === "changed" && open.batch.steps[open.at]?.plan.step.ends === "boot") this.willReboot = true;
    this.journal.push(`end ${key} ${now} 0`);
    Object.assign(open, { at: open.at + 1, isStarted: false, isFailed: now === "failed" });
  }

  #closeSegment(runner: ModelRunner, { number, batch, isFailed }: NonNullable<ModelRunner["open"]>): boolean {
    if (batch.facts) this.journal.push("fact facts hostname=model");
    const how = `${isFailed ? "failed" : ""}${this.#request ? "stopped" : ""}`;
    this.journal.push(`segment-end ${number} ${how}`);
    Object.assign(runner, { open: undefined, wants: number + 1, isParting: batch.isLast && how === "" });
    return true;
  }

  #end(outcome: string): boolean {
    this.runner = undefined;
    this.journal.push(`bye ${outcome}`);
    return true;
  }
}
