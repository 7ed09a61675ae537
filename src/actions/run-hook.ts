import { open, type FileHandle } from "node:fs/promises";
import { run, type ProcessOptions } from "#base/process.ts";
import { poll, within } from "#base/wait.ts";
import { cleanText } from "#engine/events/clean.ts";
import { omitUndefined } from "#base/omit-undefined.ts";

/** The program of a hook, a drain or a gate, on the bastion. */
export interface HookProgram {
  readonly words: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** A file for the hook's output; absent: `onOutput` gets the output. */
  readonly log?: string;
  readonly onOutput?: ProcessOptions["onOutput"];
  readonly limitSeconds: number;
  /** The hook is ended this long before its limit; half of this time later `runHook` returns in any case. 0: `runHook` awaits the hook's end. */
  readonly spareSeconds: number;
  /** Whether the hook, a gate, is repeated until it ends with 0 or its time is over. */
  readonly isRepeated: boolean;
  readonly signal: AbortSignal;
}

/** The result of a hook; of a gate, the result of its last attempt. */
export interface HookEnd {
  readonly ok: boolean;
  /** The reason, with the end of the output. */
  readonly message?: string;
  /** Resolves when the hook has ended; present if `runHook` returned before. */
  readonly exit?: Promise<unknown>;
}

/** Milliseconds between two attempts of a gate. */
const pauseMs = 2_000;
/** Milliseconds from SIGTERM to SIGKILL. */
const graceMs = 10_000;
/** The most characters of output in the result's message. */
const tailLength = 1_000;

/**
 * Runs a hook in a process group of its own, which the limit or the signal ends: before the promise resolves, or before `exit` resolves.
 * @throws the signal's reason
 */
export async function runHook(program: HookProgram): Promise<HookEnd> {
  const { signal, limitSeconds, spareSeconds, isRepeated } = program;
  const limitMs = (limitSeconds - spareSeconds) * 1000;
  const until = performance.now() + limitMs;
  let end: HookEnd = { ok: false };
  const isOver = async (): Promise<boolean> => {
    end = await runOnce(program, until - performance.now());
    if (signal.aborted) await end.exit;
    signal.throwIfAborted();
    return end.ok || !isRepeated;
  };
  await poll(isOver, { everyMs: pauseMs, limitMs, signal });
  return end;
}

async function runOnce(
  { words, cwd, env, log, onOutput, limitSeconds, spareSeconds, signal }: HookProgram,
  leftMs: number,
): Promise<HookEnd> {
  const file = log === undefined ? undefined : await open(log, "a+", 0o600);
  try {
    const limitMs = Math.max(0, leftMs);
    const output = file ? { log: file.fd } : { tailBytes: 4 * tailLength, ...omitUndefined({ onOutput }) };
    const program = { cwd, env: { ...process.env, ...env }, ...output, ownGroup: true };
    const gone = run(words, { ...program, limitMs, graceMs, signal });
    const end = await (spareSeconds > 0 ? within(limitMs + spareSeconds * 500, gone) : gone);
    // A hook that exits with 0 after SIGTERM has not succeeded.
    if (end?.code === 0 && end.stopped === undefined) return { ok: true };
    const how = end?.signal === undefined ? `it exits with ${end?.code}` : `it ended by ${end.signal}`;
    const reason = end && end.stopped === undefined ? how : `it ran out of its ${limitSeconds} s`;
    const printed = file ? await readTail(file) : (end?.stderr ?? "").trim() || (end?.stdout ?? "");
    const tail = cleanText(printed.slice(-tailLength)).trim();
    const message = tail === "" ? reason : `${reason}: ${tail}`;
    return { ok: false, message, ...(end === undefined && { exit: gone.catch(() => undefined) }) };
  } finally {
    await file?.close();
  }
}

async function readTail(file: FileHandle): Promise<string> {
  const { size } = await file.stat();
  // A character has at most four bytes.
  const length = Math.min(size, 4 * tailLength);
  const { buffer } = await file.read(Buffer.alloc(length), 0, length, size - length);
  return buffer.toString("utf8");
}

/** The words and the environment of a hook's command for a node. */
export function hookCommand(
  command: string,
  { name, id, address }: { readonly name: string; readonly id: string; readonly address: string },
): Pick<HookProgram, "words" | "env"> {
  return {
    words: ["/bin/sh", "-c", command],
    env: { KCORE_NODE: name, KCORE_NODE_ID: id, KCORE_ADDRESS: address },
  };
}
