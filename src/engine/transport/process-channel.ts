import type { ChildProcessByStdio } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import { createChunkQueue } from "./chunk-queue.ts";
import type { Channel, Exit } from "./host.ts";
import { createTail } from "#base/tail.ts";
import { hostFailure } from "./host-problems.ts";

const stdoutLimit = 256 * 1024;
const stderrLimit = 64 * 1024;

export interface ProcessChannelOptions {
  /** The host, for messages. */
  readonly name: string;
  readonly child: ChildProcessByStdio<Writable, Readable, Readable>;
  /** Gets the child's output and returns the command's part of it; absent: all of it. */
  readonly filter?: (chunk: Buffer) => Buffer;
  /** Turns the child's end and stderr into those of the command that it stands for. */
  readonly endOf?: (exit: Exit, stderr: string) => { readonly exit: Exit; readonly stderr: string };
  /** Kills the child when its channel is closed; without this, the child only loses its streams. */
  readonly kill?: boolean;
  /** Gets the child's stderr as it arrives, and undefined at its end. */
  readonly onStderr?: (chunk?: Buffer) => void;
}

/** A channel whose other end is a process of this machine, by its three streams. */
export function createProcessChannel({
  name,
  child,
  filter,
  endOf,
  kill = false,
  onStderr,
}: ProcessChannelOptions): Channel {
  // Room for the part that `endOf` takes away.
  const tail = createTail(endOf ? stderrLimit + 256 : stderrLimit);
  const stdout = createChunkQueue(stdoutLimit, () => child.stdout.resume());
  const { promise: exit, resolve: resolveExit } = Promise.withResolvers<Exit>();
  const gone = () =>
    hostFailure({ code: "CHANNEL_CLOSED", message: `the command on ${name} no longer reads its input` });
  const waiting = new Set<(error: Error) => void>();
  let over = false;
  let taken = 0;
  const finish = () => {
    over = true;
    for (const reject of waiting) reject(gone());
    waiting.clear();
  };
  const translate = (ended: Exit) => endOf?.(ended, tail.text()) ?? { exit: ended, stderr: tail.text() };

  child.stdout.on("data", (bytes: Buffer) => {
    const chunk = filter?.(bytes) ?? bytes;
    if (chunk.length > 0 && !stdout.push(chunk)) child.stdout.pause();
  });
  child.stdout.on("end", () => stdout.end());
  child.stderr.on("data", (chunk: Buffer) => {
    tail.push(chunk);
    onStderr?.(chunk);
  });
  child.stderr.on("end", () => onStderr?.());
  for (const stream of [child.stdin, child.stdout, child.stderr]) stream.on("error", () => undefined);
  child.on("error", (error) => {
    tail.push(Buffer.from(`${error.message}\n`));
    finish();
    stdout.end();
    void stdout.drained.then(() => resolveExit({}));
  });
  child.on("close", (code, signal) => {
    finish();
    stdout.end();
    const ended = translate(code !== null ? { code } : signal !== null ? { signal } : {}).exit;
    void stdout.drained.then(() => resolveExit(ended));
  });

  return {
    stdout,
    exit,
    stderrTail: () => translate({}).stderr.slice(-stderrLimit),
    end: () => child.stdin.end(),
    close() {
      if (over) return;
      finish();
      stdout.discard();
      resolveExit({});
      // Like a closed SSH channel: the command finds its streams gone, and is not killed unless `kill` is set.
      for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy();
      if (kill) child.kill();
      child.unref();
    },
    bytesTaken: () => taken,
    async write(bytes) {
      if (over || !child.stdin.writable) throw gone();
      await new Promise<void>((resolve, reject) => {
        waiting.add(reject);
        child.stdin.write(bytes, (error) => {
          taken += bytes.length;
          waiting.delete(reject);
          if (error) reject(gone());
          else resolve();
        });
      });
    },
  };
}
