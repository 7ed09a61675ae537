import { createHash } from "node:crypto";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { shippedText } from "#engine/program/texts.ts";

/** How simulated nodes behave. */
export interface Behaviour {
  /** Milliseconds that a step takes. */
  readonly pace: number;
  /** The output of the node of that name in place of its steps, given the key of its first one. */
  readonly floods?: { readonly name: string; readonly says: (key: string) => Iterable<string> };
}

/** The node's side of an SSH channel. */
export interface Wire {
  write(bytes: string): void;
  close(): void;
}

/**
 * The node's end of one run without a shell (docs/runner.md): it reads the real bootstrap, runner and segments, and answers in real frames
 * that every step is in order. Its steps are commands: it asks for no content.
 */
export class SimulatedRun {
  readonly #wire: Wire;
  readonly #behaviour: Behaviour;
  #buffer: Buffer = Buffer.alloc(0);
  /** The receiver of the bytes that were announced last; undefined while a line is read. */
  #pending: { readonly length: number; readonly take: (text: string) => void } | undefined;
  #name = "";
  #nonce = "";
  #stopped = false;
  #work: Promise<void> = Promise.resolve();

  constructor(wire: Wire, behaviour: Behaviour) {
    this.#wire = wire;
    this.#behaviour = behaviour;
  }

  /** Bytes that arrived on stdin. */
  push(chunk: Uint8Array): void {
    this.#buffer = this.#buffer.length === 0 ? Buffer.from(chunk) : Buffer.concat([this.#buffer, chunk]);
    for (;;) {
      const end = this.#pending?.length ?? this.#buffer.indexOf(10);
      if (end < 0 || this.#buffer.length < end) return;
      const [text, pending] = [this.#buffer.subarray(0, end).toString(), this.#pending];
      this.#buffer = this.#buffer.subarray(pending ? end : end + 1);
      this.#pending = undefined;
      if (pending) pending.take(text);
      else this.#take(text);
    }
  }

  /** The connection is gone. */
  end(): void {
    this.#stopped = true;
  }

  #take(line: string): void {
    const [command = "", first = "", second = ""] = line.split(" ");
    const bytes = (length: string, take: (text: string) => void): void => {
      this.#pending = { length: Number(length), take };
    };
    const bootstrap = /(?:^|;)k=\$\(dd bs=(\d+) /.exec(line)?.[1];
    if (bootstrap !== undefined) return bytes(bootstrap, (text) => this.#begin(text));
    if (command === "runner")
      bytes(first, (text) => {
        const opening = "\nk_given() {\n:\n";
        const [begin, end] = [text.indexOf(opening) + opening.length, text.indexOf(`\n}\n${shippedText("runner")}`)];
        this.#say("lock mine");
        this.#begins(valueOf(text, "k_seg"), text.slice(begin, end));
      });
    else if (command === "seg") bytes(second, (text) => this.#begins(first, text));
    else if (command === "stop" || command === "abort") this.end();
    else if (command === "fin")
      void this.#work.then(() => {
        this.#say(`bye ${first}`);
        this.#wire.close();
      });
  }

  #begin(text: string): void {
    this.#nonce = valueOf(text, "k_nonce");
    this.#name = valueOf(text, "K_NODE");
    const machine = createHash("md5").update(this.#name).digest("hex");
    this.#say(`hello 1 0 ${machine} ${machine} ${Math.floor(Date.now() / 1000)}`);
    this.#say("runner new 0");
    this.#say("told");
  }

  #begins(number: string, text: string): void {
    this.#work = this.#work.then(() => this.#segment(number, text));
  }

  async #segment(number: string, text: string): Promise<void> {
    this.#say(`segment ${number}`);
    const keys = [...text.matchAll(/^i=([0-9a-f]+)$/gm)].map(([, key = ""]) => key);
    const { pace, floods } = this.#behaviour;
    if (floods?.name === this.#name)
      for (const frame of floods.says(keys[0] ?? "")) {
        if (this.#stopped) return;
        this.#say(frame);
        await nextTurn();
      }
    for (const key of keys) {
      if (this.#stopped) break;
      this.#say(`start ${key}`);
      await sleep(pace);
      this.#say(`end ${key} ok 0`);
    }
    this.#say(`segment-end ${number} ${this.#stopped ? "stopped" : ""}`);
    if (!this.#stopped && valueOf(text, "k_fin") !== "") this.#say("bye done");
  }

  #say(words: string): void {
    this.#wire.write(`${this.#nonce} ${words}\n`);
  }
}

/** The value of an assignment that needs no quotes; empty if there is none. */
function valueOf(text: string, name: string): string {
  return new RegExp(`^${name}=(\\S+)$`, "m").exec(text)?.[1] ?? "";
}
