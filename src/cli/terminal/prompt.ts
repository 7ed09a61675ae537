import type { ReadStream } from "node:tty";
import { widthOf } from "#base/text.ts";

/** A question at the terminal; `secret`: the answer is read without echo. */
export interface PromptOptions {
  readonly text: string;
  readonly secret: boolean;
  readonly signal: AbortSignal;
  /** Called for Ctrl-C while keys are read one by one. */
  readonly onInterrupt: () => void;
}

/** Whether there is a terminal to ask at. */
export function canPrompt(): boolean {
  // `isTTY` is undefined for other streams, although its type excludes that.
  return Boolean(process.stdin.isTTY && process.stderr.isTTY);
}

/** Asks on the terminal (stderr and stdin) and resolves with the line; undefined once `signal` is aborted, or after Ctrl-D. */
export async function promptLine({ text, secret, signal, onInterrupt }: PromptOptions): Promise<string | undefined> {
  const input: ReadStream = process.stdin;
  if (signal.aborted) return undefined;
  // Raw mode begins before the question: keys typed right after the text appears must not be echoed.
  input.setRawMode(true);
  process.stderr.write(`${text}: `);
  input.setEncoding("utf8");
  input.resume();
  try {
    return await new Promise<string | undefined>((resolve) => {
      let typed = "";
      const finish = (answer: string | undefined) => {
        input.off("data", onData);
        signal.removeEventListener("abort", onAbort);
        resolve(answer);
      };
      const onAbort = () => finish(undefined);
      const erase = (end: string) => {
        if (!secret) process.stderr.write("\b \b".repeat(widthOf(end)));
        typed = typed.slice(0, typed.length - end.length);
      };
      const onData = (chunk: string) => {
        for (const key of chunk) {
          if (key === "\r" || key === "\n") return finish(typed);
          if (key === "\u0003") onInterrupt();
          else if (key === "\u0004" && typed === "") return finish(undefined);
          else if (key === "\u007f" || key === "\b") erase(Array.from(typed).at(-1) ?? "");
          else if (key === "\u0015") erase(typed);
          else if (key >= " ") {
            typed += key;
            if (!secret) process.stderr.write(key);
          }
        }
      };
      input.on("data", onData);
      signal.addEventListener("abort", onAbort);
    });
  } finally {
    await discardTyped(input);
    input.setRawMode(false);
    // Another listener may be active by now: the choices after a Ctrl-C.
    if (input.listenerCount("data") === 0) input.pause();
    process.stderr.write("\n");
  }
}

/** Discards keys typed for a closed question, which the shell or the next question would read. */
async function discardTyped(input: ReadStream): Promise<void> {
  const discard = (): void => undefined;
  input.on("data", discard);
  // Node reads the pending input of the terminal between two turns of its loop.
  for (let turns = 0; turns < 2; turns++) await new Promise((resolve) => setImmediate(resolve));
  input.off("data", discard);
}
