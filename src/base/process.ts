import type { Readable } from "node:stream";
import { quote } from "./quote.ts";
import { createTail } from "./tail.ts";
import { poll } from "./wait.ts";

export interface ProcessOptions {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly input?: string | Uint8Array;
  /** Milliseconds after which the program is ended. */
  readonly limitMs?: number;
  /** Ends the program; `run` rejects with its reason. */
  readonly signal?: AbortSignal;
  /** The program is ended if stdout and stderr together exceed this; by default 64 MiB, or no limit if `tailBytes` is set. */
  readonly mostBytes?: number;
  /** Keeps only this many last bytes of stdout, and of stderr, so that the program may print without end. */
  readonly tailBytes?: number;
  /**
   * Gives the program its own process group, which Ctrl-C at the terminal does not reach. If `run` stops the program, it kills the
   * group, and waits for the group's end, at most `graceMs` and a second.
   */
  readonly ownGroup?: boolean;
  /** Milliseconds from SIGTERM to SIGKILL; by default 0, SIGKILL at once. */
  readonly graceMs?: number;
  readonly onOutput?: (stream: "out" | "err", chunk: Buffer) => void;
  /** Reads stdout in place of `run`, with back pressure; `run` keeps none of it. An error of `read` stops the program. */
  readonly read?: (stdout: Readable) => Promise<unknown>;
  /** The streams that the program inherits: all three, or stderr alone, on which it may prompt. */
  readonly inherit?: "terminal" | "stderr";
  /** A file descriptor that stdout and stderr go to; `run` sees no output then. */
  readonly log?: number;
}

export interface ProcessEnd {
  /** As in a shell: 128 plus the number of a fatal signal; 127 if there is no such program, 126 if the system cannot run it. */
  readonly code: number;
  readonly signal?: NodeJS.Signals;
  /** The limit that `run` stopped the program for: `limitMs` or `mostBytes`. */
  readonly stopped?: "time" | "size";
  readonly bytes: Buffer;
  readonly stdout: string;
  /** The last `tailBytes`, by default the last 1 MiB. */
  readonly stderr: string;
}

const defaultMostBytes = 64 * 2 ** 20;
const stderrBytes = 2 ** 20;

/** zx's options, all set, so that no ZX_ variable counts. `exec` replaces the shell by the program; zx's own quoting is for bash alone. */
const zxOptions = {
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
 * Runs a program with literal arguments and waits for its end. The time limit, the signal or too much output stops it.
 * An exit code other than 0 is no error. @throws the signal's reason; an error of `read`
 */
export async function run(words: readonly string[], options: ProcessOptions = {}): Promise<ProcessEnd> {
  const { cwd = ".", env = process.env, input = "", limitMs, signal, graceMs = 0, ownGroup = false, read } = options;
  // Loaded here: zx takes longer to load than most commands of kcore that run no program.
  const [{ $ }, { constants }] = await Promise.all([import("zx/core"), import("node:os")]);
  signal?.throwIfAborted();
  const abort = new AbortController();
  let stopped: ProcessEnd["stopped"];
  const inherited = options.inherit === "terminal" ? "inherit" : undefined;
  const out = options.log ?? "pipe";
  const start = $({
    ...zxOptions,
    // Always set: zx's default is the folder in which zx was loaded.
    cwd,
    env,
    input: Buffer.from(input),
    detached: ownGroup,
    stdio: [inherited ?? (input.length === 0 ? "ignore" : "pipe"), inherited ?? out, options.inherit ? "inherit" : out],
    signal: abort.signal,
    // zx would otherwise keep all output in memory.
    store: { stdout: discarding(), stderr: discarding(), stdall: discarding() },
  });
  const running = start`${words}`;
  const kill = (name: NodeJS.Signals | 0): boolean => {
    try {
      return running.pid !== undefined && process.kill(ownGroup ? -running.pid : running.pid, name);
    } catch {
      return false;
    }
  };
  let killTimer: NodeJS.Timeout | undefined;
  const stop = (why?: ProcessEnd["stopped"]): void => {
    if (abort.signal.aborted) return;
    stopped = why;
    if (graceMs === 0) kill("SIGKILL");
    else killTimer = setTimeout(kill, graceMs, "SIGKILL");
    // zx sends SIGTERM, and closes the streams at the program's end: children of the program may still hold them.
    abort.abort();
  };
  const onAbort = (): void => stop();
  signal?.addEventListener("abort", onAbort, { once: true });
  const limitTimer = limitMs === undefined ? undefined : setTimeout(stop, Math.min(limitMs, 2 ** 31 - 1), "time");
  const { tailBytes, mostBytes = tailBytes === undefined ? defaultMostBytes : Number.POSITIVE_INFINITY } = options;
  const tails = { out: createTail(tailBytes ?? mostBytes), err: createTail(tailBytes ?? stderrBytes) };
  let printed = 0;
  const keep = (stream: "out" | "err") => (chunk: Buffer) => {
    tails[stream].push(chunk);
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
    const { exitCode, signal: killedBy, cause } = await running;
    // The wait is limited: under an init that does not reap, zombies stay in the group for ever.
    const longestMs = graceMs + 1_000;
    if (ownGroup && abort.signal.aborted) await poll(() => !kill(0), { everyMs: 20, limitMs: longestMs });
    signal?.throwIfAborted();
    if (stopped === undefined) await reading;
    const bytes = tails.out.bytes();
    // Set if the system could not start the program.
    const problem = cause instanceof Error && !abort.signal.aborted ? cause.message : "";
    return {
      code: problem !== "" ? 126 : (exitCode ?? 128 + (killedBy === null ? 0 : constants.signals[killedBy])),
      ...(killedBy !== null && { signal: killedBy }),
      ...(stopped && { stopped }),
      bytes,
      stdout: tails.out.text(),
      stderr: tails.err.text() + problem,
    };
  } finally {
    clearTimeout(limitTimer);
    clearTimeout(killTimer);
    signal?.removeEventListener("abort", onAbort);
  }
}

/** An array that keeps nothing. */
function discarding(): Buffer[] {
  return Object.assign([], { push: () => 0 });
}
