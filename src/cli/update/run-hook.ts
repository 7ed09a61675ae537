import { spawn, type ChildProcess } from "node:child_process";
import { open, type FileHandle } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
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
/** Who does not end when it is told to is told again, and ended. */
const endings = [
  { signal: "SIGTERM", afterMs: 0 },
  { signal: "SIGTERM", afterMs: 5_000 },
  { signal: "SIGKILL", afterMs: 10_000 },
] as const;
/** What is not reaped by whoever should is not waited for. */
const longestEndMs = 11_000;
const lookMs = 50;
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
    await sleep(pauseMs, undefined, { signal });
  }
}

async function runOnce(
  { command, words, cwd, env, log, limitSeconds, spareSeconds, signal }: HookProgram,
  leftMs: number,
): Promise<HookEnd> {
  const file = await open(log, "a+", 0o600);
  try {
    const child = spawn(command, words, {
      cwd,
      env: { ...process.env, ...env },
      stdio: ["ignore", file.fd, file.fd],
      detached: true,
    });
    const { promise: ended, resolve } = Promise.withResolvers<string>();
    child.on("error", (error) => resolve(error.message));
    child.on("exit", (code, by) =>
      resolve(code === 0 ? "" : code === null ? `it ended by ${by}` : `it exits with ${code}`),
    );
    const late = new AbortController();
    const given = Promise.withResolvers<undefined>();
    const left = Math.max(0, leftMs);
    const timers = [setTimeout(() => late.abort(), left)];
    if (spareSeconds > 0) timers.push(setTimeout(() => given.resolve(undefined), left + spareSeconds * 500));
    const stopped = AbortSignal.any([signal, late.signal]);
    let ending: Promise<void> | undefined;
    const onStop = (): void => void (ending ??= endInSteps(child));
    stopped.addEventListener("abort", onStop, { once: true });
    if (stopped.aborted) onStop();
    const gone = ended.then(async (why) => {
      stopped.removeEventListener("abort", onStop);
      await ending;
      return why;
    });
    const why = await Promise.race([gone, given.promise]);
    for (const timer of timers) clearTimeout(timer);
    // Whoever ends with 0 because it was told to end has done nothing.
    if (why === "" && !late.signal.aborted) return { ok: true };
    const reason = late.signal.aborted || why === undefined ? `it ran out of its ${limitSeconds} s` : why;
    const tail = cleanText((await endOf(file)).slice(-tailLength)).trim();
    const message = tail === "" ? reason : `${reason}: ${tail}`;
    return { ok: false, message, ...(why === undefined && { left: gone }) };
  } finally {
    await file.close();
  }
}

/** Ends all that it started: over when nothing of its group is left, or nothing more can be done. The group is its own as long as it is not empty. */
async function endInSteps({ pid }: ChildProcess): Promise<void> {
  if (pid === undefined) return;
  const begun = performance.now();
  const open = [...endings];
  for (;;) {
    const passed = performance.now() - begun;
    const due = open[0] !== undefined && passed >= open[0].afterMs ? open.shift() : undefined;
    if (!signalGroup(pid, due?.signal ?? 0) || (open.length === 0 && passed > longestEndMs)) return;
    await sleep(lookMs);
  }
}

/** Whether there is anybody in it. */
function signalGroup(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-pid, signal);
  } catch {
    return false;
  }
}

async function endOf(file: FileHandle): Promise<string> {
  const { size } = await file.stat();
  // A character has at most four bytes.
  const length = Math.min(size, 4 * tailLength);
  const { buffer } = await file.read(Buffer.alloc(length), 0, length, size - length);
  return buffer.toString("utf8");
}
