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
  /** More bytes of output than this end the program; by default 64 MiB, with `tailBytes` no limit. */
  readonly mostBytes?: number;
  /** Keeps only so many last bytes each of stdout and stderr: the program may print without end. */
  readonly tailBytes?: number;
  /**
   * Gives the program its own process group, which Ctrl-C at the terminal does not reach. If `run` stops the program, it kills the
   * group and waits until the group is empty.
   */
  readonly ownGroup?: boolean;
  /** Milliseconds from SIGTERM to SIGKILL; by default 0, SIGKILL at once. */
  readonly graceMs?: number;
  /** Called with each chunk of output. */
  readonly onOutput?: (stream: "out" | "err", chunk: Buffer) => void;
  /** Reads stdout in place of `run`, with back pressure; `run` keeps none of it. Its error stops the program. */
  readonly read?: (stdout: Readable) => Promise<unknown>;
  /** The streams that the program inherits: all three, or stderr alone, where it may prompt. */
  readonly inherit?: "terminal" | "stderr";
  /** A file descriptor that stdout and stderr go to; `run` sees no output then. */
  readonly log?: number;
}

/** The end of a program. */
export interface Ended {
  /** As in a shell: 128 plus the number of a fatal signal; 127 if there is no such program, 126 if the system cannot run it. */
  readonly code: number;
  readonly signal?: NodeJS.Signals;
  /** The limit that `run` stopped the program for: `limitMs` or `mostBytes`. */
  readonly stopped?: "time" | "size";
  readonly bytes: Buffer;
  readonly stdout: string;
  readonly stderr: string;
}

const usualBytes = 64 * 2 ** 20;
const stderrBytes = 2 ** 20;

/** zx's options, all set, so that no ZX_ variable counts. `exec` replaces the shell by the program; zx's own quoting is for bash alone. */
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
 * Runs a program with literal arguments and waits for its end. The time limit, the signal or too much output stops it.
 * An exit code other than 0 is no error.
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
    // Always set: zx's default is the folder in which zx was loaded.
    cwd,
    env,
    input: Buffer.from(input),
    detached: ownGroup,
    stdio: [ours ?? (input.length === 0 ? "ignore" : "pipe"), ours ?? out, options.inherit ? "inherit" : out],
    signal: abort.signal,
    // Discards: zx would keep all output in memory.
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
    // zx sends SIGTERM, and detaches from the streams when the program has ended.
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
    // A limited wait: where init does not reap, zombies stay in the group for ever.
    const longestMs = graceMs + 1_000;
    if (ownGroup && abort.signal.aborted) await poll(() => !kill(0), { everyMs: 20, limitMs: longestMs });
    signal?.throwIfAborted();
    if (stopped === undefined) await reading;
    const bytes = kept.out.bytes();
    // Set if the system could not start the program.
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
