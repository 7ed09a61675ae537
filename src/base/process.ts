import type { Readable } from "node:stream";
import { quote } from "./quote.ts";
import { createTail } from "./tail.ts";
import { poll } from "./wait.ts";

export interface RunOptions {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly input?: string | Uint8Array;
  /** Ends the program after so many milliseconds. */
  readonly limitMs?: number;
  /** Ends the program; `run` rejects with its reason. */
  readonly signal?: AbortSignal;
  /** More bytes of output end the program: 64 MiB unless told otherwise. */
  readonly mostBytes?: number;
  /** The program may print without end; of stdout and of stderr the last so many bytes are kept. */
  readonly tailBytes?: number;
  /** A process group of its own: `run` ends all of it, and waits until all of it is gone. Ctrl-C at the terminal does not reach it. */
  readonly ownGroup?: boolean;
  /** Milliseconds from SIGTERM to SIGKILL, which comes at once unless told otherwise. */
  readonly graceMs?: number;
  /** Gets the output as it comes. */
  readonly onOutput?: (stream: "out" | "err", chunk: Buffer) => void;
  /** Reads stdout in the place of `run`, at its own pace. */
  readonly read?: (stdout: Readable) => Promise<unknown>;
  /** `terminal`: the program has our three streams. `stderr`: ours, since it may ask there. */
  readonly inherit?: "terminal" | "stderr";
  /** Where stdout and stderr go, a descriptor, in the place of `run`. */
  readonly log?: number;
}

export interface Ended {
  /** As a shell has it: 128 and the number of the signal that ended it; 127 where there is no such program, 126 where it cannot be run. */
  readonly code: number;
  readonly signal?: NodeJS.Signals;
  /** Why it was ended before its time. */
  readonly stopped?: "time" | "size";
  readonly bytes: Buffer;
  readonly stdout: string;
  readonly stderr: string;
}

const usualBytes = 64 * 2 ** 20;
const stderrBytes = 2 ** 20;

/** The program takes the shell's place (exec). zx quotes for bash alone, so it is given our quoting; nothing is left to ZX_ variables. */
const fixed = {
  shell: "/bin/sh",
  prefix: "exec ",
  postfix: "",
  quote,
  nothrow: true,
  quiet: true,
  verbose: false,
  preferLocal: false,
  timeout: 0,
} as const;

/**
 * Runs a program with its arguments as they are, and waits for its end, which the limit, the signal or too much output brings about.
 * A code that is not 0 is no error.
 */
export async function run(words: readonly string[], options: RunOptions = {}): Promise<Ended> {
  const { cwd = ".", env = process.env, input = "", limitMs, signal, graceMs = 0, ownGroup = false, read } = options;
  // Loaded here: zx takes longer to load than most commands of kcore that run no program.
  const [{ $ }, { constants }] = await Promise.all([import("zx/core"), import("node:os")]);
  signal?.throwIfAborted();
  const abort = new AbortController();
  let stopped: Ended["stopped"];
  const ours = options.inherit === "terminal" ? "inherit" : undefined;
  const out = options.log ?? "pipe";
  const start = $({
    ...fixed,
    // Without it zx takes the folder in which it was loaded.
    cwd,
    env,
    input: Buffer.from(input),
    detached: ownGroup,
    stdio: [ours ?? (input.length === 0 ? "ignore" : "pipe"), ours ?? out, options.inherit ? "inherit" : out],
    signal: abort.signal,
    // zx would keep all output.
    store: { stdout: dropped(), stderr: dropped(), stdall: dropped() },
  });
  const running = start`${words}`;
  const kill = (name: NodeJS.Signals | 0): boolean => {
    try {
      return running.pid !== undefined && process.kill(ownGroup ? -running.pid : running.pid, name);
    } catch {
      return false;
    }
  };
  let killing: NodeJS.Timeout | undefined;
  const stop = (why?: Ended["stopped"]): void => {
    if (abort.signal.aborted) return;
    stopped = why;
    if (graceMs === 0) kill("SIGKILL");
    else killing = setTimeout(kill, graceMs, "SIGKILL");
    // zx sends SIGTERM, and lets go of the streams when the program has ended.
    abort.abort();
  };
  const onAbort = (): void => stop();
  signal?.addEventListener("abort", onAbort, { once: true });
  const timer = limitMs === undefined ? undefined : setTimeout(stop, Math.min(limitMs, 2 ** 31 - 1), "time");
  const { tailBytes, mostBytes = tailBytes === undefined ? usualBytes : Number.POSITIVE_INFINITY } = options;
  const kept = { out: createTail(tailBytes ?? mostBytes), err: createTail(tailBytes ?? stderrBytes) };
  let printed = 0;
  const keep = (stream: "out" | "err") => (chunk: Buffer) => {
    kept[stream].push(chunk);
    options.onOutput?.(stream, chunk);
    if ((printed += chunk.length) > mostBytes) stop("size");
  };
  if (!read) running.stdout?.on("data", keep("out"));
  running.stderr?.on("data", keep("err"));
  // A program may end before it has read its input.
  running.stdin?.on("error", () => undefined);
  const reading = running.stdout ? read?.(running.stdout) : undefined;
  reading?.catch(() => stop());
  try {
    const { exitCode, signal: by, cause } = await running;
    // Without an init that reaps, an ended process stays in its group for ever.
    const longestMs = graceMs + 1_000;
    if (ownGroup && abort.signal.aborted) await poll(() => !kill(0), { everyMs: 20, limitMs: longestMs });
    signal?.throwIfAborted();
    if (stopped === undefined) await reading;
    const bytes = kept.out.bytes();
    // The system could not start it.
    const problem = cause instanceof Error && !abort.signal.aborted ? cause.message : "";
    return {
      code: problem !== "" ? 126 : (exitCode ?? 128 + (by === null ? 0 : constants.signals[by])),
      ...(by !== null && { signal: by }),
      ...(stopped && { stopped }),
      bytes,
      stdout: kept.out.text(),
      stderr: kept.err.text() + problem,
    };
  } finally {
    clearTimeout(timer);
    clearTimeout(killing);
    signal?.removeEventListener("abort", onAbort);
  }
}

function dropped(): Buffer[] {
  return Object.assign([], { push: () => 0 });
}
