import { open, type FileHandle } from "node:fs/promises";
import { run } from "#base/process.ts";
import { wait } from "#base/wait.ts";
import { cleanText } from "#engine/events/clean.ts";

/** A program that a hook is, and where what it prints is kept. */
export interface HookProgram {
  readonly command: string;
  readonly words: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly log: string;
  readonly limitSeconds: number;
  /** So much before its time is over it is ended; half of that it has to end, then it is answered for. 0: it is waited for. */
  readonly spareSeconds: number;
  /** Again and again until it ends with 0, or its time is over. */
  readonly isRepeated: boolean;
  readonly signal: AbortSignal;
}

export interface HookEnd {
  readonly ok: boolean;
  /** Why it is not, with the end of what it printed. */
  readonly message?: string;
  /** It was answered for and has not ended yet; it does soon. */
  readonly left?: Promise<unknown>;
}

const pauseMs = 2_000;
/** A hook that does not end when it is told to is killed after so long. */
const graceMs = 10_000;
/** Of what it printed, so much goes along with the answer. */
const tailLength = 1_000;

/**
 * Runs it in a process group of its own, which is ended when its time is over, or when the signal says so: then it has ended before that is
 * thrown. @throws the signal's reason
 */
export async function runHook(program: HookProgram): Promise<HookEnd> {
  const { signal, limitSeconds, spareSeconds, isRepeated } = program;
  const until = performance.now() + (limitSeconds - spareSeconds) * 1000;
  for (;;) {
    const end = await runOnce(program, until - performance.now());
    if (signal.aborted) await end.left;
    signal.throwIfAborted();
    if (end.ok || !isRepeated || until - performance.now() < pauseMs) return end;
    await wait(pauseMs, signal);
  }
}

async function runOnce(
  { command, words, cwd, env, log, limitSeconds, spareSeconds, signal }: HookProgram,
  leftMs: number,
): Promise<HookEnd> {
  const file = await open(log, "a+", 0o600);
  try {
    const limitMs = Math.max(0, leftMs);
    const program = { cwd, env: { ...process.env, ...env }, log: file.fd, ownGroup: true };
    const gone = run([command, ...words], { ...program, limitMs, graceMs, signal });
    const over = new AbortController();
    const answerDue = spareSeconds > 0 ? [wait(limitMs + spareSeconds * 500, over.signal).catch(() => undefined)] : [];
    const end = await Promise.race([gone, ...answerDue]).finally(() => over.abort());
    // A hook that ends with 0 because it was told to end has done nothing.
    if (end?.code === 0 && end.stopped === undefined) return { ok: true };
    const how = end?.signal === undefined ? `it exits with ${end?.code}` : `it ended by ${end.signal}`;
    const reason = end && end.stopped === undefined ? how : `it ran out of its ${limitSeconds} s`;
    const tail = cleanText((await endOf(file)).slice(-tailLength)).trim();
    const message = tail === "" ? reason : `${reason}: ${tail}`;
    return { ok: false, message, ...(end === undefined && { left: gone.catch(() => undefined) }) };
  } finally {
    await file.close();
  }
}

async function endOf(file: FileHandle): Promise<string> {
  const { size } = await file.stat();
  // A character has at most four bytes.
  const length = Math.min(size, 4 * tailLength);
  const { buffer } = await file.read(Buffer.alloc(length), 0, length, size - length);
  return buffer.toString("utf8");
}
