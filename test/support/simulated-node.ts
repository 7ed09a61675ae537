import { shippedText } from "#engine/program/texts.ts";
import { createHash } from "node:crypto";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { readSegment, readValue, type SentStep } from "./segment-reader.ts";

/** How simulated nodes behave; the same node and step behave the same each time. */
export interface NodeBehaviour {
  /** Milliseconds that a step takes on average; 150 unless given. */
  readonly pace?: number;
  /** Every n-th node fails at one of its steps; none unless given. */
  readonly failEvery?: number;
  /** Every n-th node is ten times slower; none unless given. */
  readonly slowEvery?: number;
  /** Frames of the node of this name before its steps; `says` gets the key of the first step. */
  readonly floods?: { readonly name: string; readonly says: (key: string) => Iterable<string> };
}

/** The part of a node that outlives its runs. */
export class SimulatedNode {
  readonly name: string;
  readonly index: number;
  /** Keys of steps that are in order. */
  readonly inOrder = new Set<string>();
  readonly behaviour: NodeBehaviour;

  constructor(name: string, index: number, behaviour: NodeBehaviour) {
    this.name = name;
    this.index = index;
    this.behaviour = behaviour;
  }
}

/** The node's side of an SSH channel. */
export interface NodeChannel {
  write(bytes: string | Uint8Array): void;
  close(): void;
}

/**
 * The node's end of one run, without a shell (docs/runner.md). It reads the real bootstrap, runner and segments, and answers in real frames.
 * No step is executed: a first run finds the steps different and changes them, a second finds them in order.
 */
export class SimulatedRun {
  readonly #wire: NodeChannel;
  readonly #find: (name: string) => SimulatedNode | undefined;
  #buffer: Buffer = Buffer.alloc(0);
  /** The receiver of announced bytes; undefined while a line is read. */
  #pending: { readonly length: number; readonly take: (bytes: Buffer) => void } | undefined;
  #node: SimulatedNode | undefined;
  #nonce = "";
  #dry = false;
  #stopped = false;
  #failed = "";
  readonly #blobs = new Set<string>();
  readonly #changed = new Set<string>();
  #woken = Promise.withResolvers<void>();
  #work: Promise<void> = Promise.resolve();

  constructor(wire: NodeChannel, find: (name: string) => SimulatedNode | undefined) {
    this.#wire = wire;
    this.#find = find;
  }

  /** Takes bytes that arrived on stdin. */
  push(chunk: Uint8Array): void {
    this.#buffer = this.#buffer.length === 0 ? Buffer.from(chunk) : Buffer.concat([this.#buffer, chunk]);
    for (;;) {
      if (this.#pending) {
        const { length, take } = this.#pending;
        if (this.#buffer.length < length) return;
        this.#pending = undefined;
        take(this.#buffer.subarray(0, length));
        this.#buffer = this.#buffer.subarray(length);
      } else {
        const end = this.#buffer.indexOf(10);
        if (end < 0) return;
        const line = this.#buffer.subarray(0, end).toString();
        this.#buffer = this.#buffer.subarray(end + 1);
        this.#take(line);
      }
    }
  }

  /** The connection is gone. */
  end(): void {
    this.#stopped = true;
    this.#wake();
  }

  #take(line: string): void {
    const [command = "", ...words] = line.split(" ");
    const bytes = (length: string | undefined, take: (bytes: Buffer) => void) => {
      this.#pending = { length: Number(length), take };
    };
    const bootstrap = /(?:^|;)k=\$\(dd bs=(\d+) /.exec(line);
    if (bootstrap) return bytes(bootstrap[1], (text) => this.#begin(text.toString()));
    switch (command) {
      case "runner":
        return bytes(words[0], (runner) => {
          const text = runner.toString();
          const opening = "\nk_given() {\n:\n";
          this.#say("lock mine");
          this.#queueSegment(
            readValue(text, "k_seg") ?? "",
            text.slice(text.indexOf(opening) + opening.length, text.indexOf(`\n}\n${shippedText("runner")}`)),
          );
        });
      case "seg":
        return bytes(words[1], (text) => this.#queueSegment(words[0] ?? "", text.toString()));
      case "part":
        return bytes(words[1], () => this.#blobs.add(words[0] ?? ""));
      case "texts":
        return bytes(words[0], (text) => {
          for (const [, name = ""] of text.toString("latin1").matchAll(/^k_put (\S+) /gm)) this.#blobs.add(name);
        });
      case "blobs":
        return this.#wake();
      case "stop":
      case "abort":
        return this.end();
      case "fin":
        this.#stopped = true;
        this.#wake();
        void this.#work.then(() => {
          this.#say(`bye ${words[0] ?? ""}`);
          this.#wire.close();
        });
        return;
      default:
    }
  }

  #begin(text: string): void {
    this.#nonce = readValue(text, "k_nonce") ?? "";
    this.#dry = readValue(text, "K_DRY") === "1";
    const name = readValue(text, "K_NODE") ?? "";
    this.#node = this.#find(name);
    if (!this.#node) return this.#say(`fatal STATE_UNUSABLE no such node: ${name}`);
    const machine = createHash("md5").update(name).digest("hex");
    this.#say(`hello 1 0 ${machine} ${machine} ${Math.floor(Date.now() / 1000)}`);
    // A look leaves everything to the runner.
    if (text.includes("\nk_steps() {")) return this.#say("look differs");
    this.#say("runner new 0");
    this.#say("told");
  }

  #queueSegment(number: string, text: string): void {
    this.#work = this.#work.then(() => this.#segment(number, text));
  }

  async #segment(number: string, text: string): Promise<void> {
    this.#say(`segment ${number}`);
    const { steps, facts } = readSegment(text);
    const { floods } = this.node.behaviour;
    if (floods?.name === this.node.name) {
      for (const frame of floods.says(steps[0]?.key ?? "")) {
        this.#say(frame);
        await nextTurn();
        if (this.#stopped) return;
      }
    }
    let quick: string[] = [];
    const flush = () => {
      if (quick.length > 0) this.#say(`quick ${quick.join(" ")}`);
      quick = [];
    };
    for (const [index, step] of steps.entries()) {
      if (this.#stopped) break;
      if (this.#failed === "" && this.#changed.size === 0 && step.quick && this.#node?.inOrder.has(step.key)) {
        quick.push(step.key);
        continue;
      }
      flush();
      await this.#step(step, index, steps.length);
    }
    flush();
    if (facts) {
      this.#say(`fact facts hostname=${this.#node?.name ?? ""}`);
      this.#say("fact facts os.id=simulated");
      this.#say("facts-end");
    }
    this.#say(`segment-end ${number} ${this.#failed === "" ? "" : "failed"}${this.#stopped ? "stopped" : ""}`);
    const outcome = readValue(text, "k_fin");
    if (outcome !== undefined && this.#failed === "" && !this.#stopped) this.#say(`bye ${outcome}`);
  }

  async #step(step: SentStep, index: number, all: number): Promise<void> {
    const { key, onFailure, onChanges, restartOn, want, applies, always, milestone, title } = step;
    const end = (outcome: string) => {
      this.#say(`end ${key} ${outcome}`);
      if (milestone !== "" && /^(ok|changed|skipped)\b/.test(outcome)) this.#say(`milestone ${key} ${milestone}`);
    };
    if (this.#failed !== "") {
      if (!onFailure.includes(this.#failed)) return;
    } else if (onFailure.length > 0) return end("skipped 0 nothing failed");
    const cause = [...restartOn, ...onChanges].find((one) => this.#changed.has(one));
    if (onChanges.length > 0 && cause === undefined) return end("skipped 0 nothing it watches changed");
    this.#say(`start ${key} ${cause === undefined ? "" : `changed ${cause}`}`.trimEnd());
    if (!(await this.#getBlobs(step))) return;
    const { node } = this;
    const long = this.#duration(step);
    await sleep(long / 3);
    const isOrder = node.inOrder.has(key) && !always;
    if (isOrder || !applies) for (const fact of want) this.#say(`have ${key} ${fact}`);
    if ((isOrder && cause === undefined) || (!applies && cause === undefined)) return end("ok 0");
    if (!isOrder) for (const fact of want) this.#say(`have ${key} ${fact.slice(0, fact.indexOf("="))}=none`);
    if (this.#dry) {
      this.#changed.add(key);
      return end("would 11");
    }
    this.#say(`apply ${key} ${isOrder ? "react" : "apply"}`);
    this.#output(key, 0, `${title}: at work on ${node.name}\n`);
    await sleep((long * 2) / 3);
    const { failEvery = 0 } = node.behaviour;
    if (failEvery > 0 && node.index % failEvery === failEvery - 1 && index === Math.floor((all * 2) / 3)) {
      this.#output(key, 1, `${title}: no space left on device\n`);
      this.#say(`rc ${key} 1`);
      this.#failed = key;
      return end("failed 13");
    }
    this.#say(`rc ${key} 0`);
    for (const fact of want) this.#say(`now ${key} ${fact}`);
    node.inOrder.add(key);
    this.#changed.add(key);
    end("changed 10");
  }

  get node(): SimulatedNode {
    if (!this.#node) throw new Error("a step came before the bootstrap");
    return this.#node;
  }

  #duration({ key, milliseconds }: SentStep): number {
    const { pace = 150, slowEvery = 0 } = this.node.behaviour;
    const chance = createHash("md5").update(`${this.node.name} ${key}`).digest().readUInt32LE() / 2 ** 32;
    const slow = slowEvery > 0 && this.node.index % slowEvery === slowEvery - 1 ? 10 : 1;
    return Math.min(milliseconds, pace * slow * (0.3 + 1.4 * chance ** 2 * 1.5));
  }

  /** Asks for the contents that the step lacks; false if the run was stopped meanwhile. */
  async #getBlobs({ blobs, key }: SentStep): Promise<boolean> {
    const missing = () => blobs.filter((name) => !this.#blobs.has(name));
    if (this.node.inOrder.has(key) || missing().length === 0) return true;
    this.#say(`need ${missing().join(" ")}`);
    while (missing().length > 0 && !this.#stopped) await this.#woken.promise;
    return !this.#stopped;
  }

  #output(key: string, stream: 0 | 1, text: string): void {
    const bytes = Buffer.from(text);
    this.#say(`out ${key}.${stream === 0 ? "o" : "e"}.0 0 ${bytes.length} 0`);
    this.#wire.write(Buffer.concat([bytes, Buffer.from("\n")]));
  }

  #wake(): void {
    this.#woken.resolve();
    this.#woken = Promise.withResolvers();
  }

  #say(words: string): void {
    this.#wire.write(`${this.#nonce} ${words}\n`);
  }
}
