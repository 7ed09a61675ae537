import type { Question } from "#engine/events/event.ts";
import { operatorCaller, knowsTitles } from "#tui/questions.ts";
import { canPrompt, promptLine } from "../terminal/prompt.ts";

/** Asks one open question after the other; removes the prompt when another view has answered. */
export class Prompts {
  readonly #answer: (id: string, value: string) => void;
  readonly #onInterrupt: () => void;
  readonly #asked = new Set<string>();
  #current: { readonly id: string; readonly stop: AbortController } | undefined;
  #open: readonly Question[] = [];
  #follows = "";
  readonly #call = operatorCaller((text) => process.stderr.write(text), knowsTitles(process.env));

  constructor(answer: (id: string, value: string) => void, onInterrupt: () => void) {
    this.#answer = answer;
    this.#onInterrupt = onInterrupt;
  }

  /** `follows`: the work that begins when a confirmation is answered by yes. */
  follow(open: readonly Question[], follows = ""): void {
    this.#open = open;
    if (canPrompt()) this.#call(open.length);
    this.#follows = follows;
    if (this.#current && !open.some(({ id }) => id === this.#current?.id)) this.#current.stop.abort();
    if (!this.#current) void this.#next();
  }

  #choice(): string {
    return `${this.#follows === "" ? "" : ` (${this.#follows})`} [yes/no]`;
  }

  async #next(): Promise<void> {
    const question = this.#open.find(({ id }) => !this.#asked.has(id));
    if (!question) return;
    const { id, secret, node, kind } = question;
    this.#asked.add(id);
    const stop = new AbortController();
    this.#current = { id, stop };
    const text = `${node === undefined ? "" : `${node}  `}${question.text}${kind === "confirm" ? this.#choice() : ""}`;
    const answer = await promptLine({ text, secret, signal: stop.signal, onInterrupt: this.#onInterrupt });
    if (answer !== undefined) this.#answer(id, answer);
    this.#current = undefined;
    await this.#next();
  }
}
