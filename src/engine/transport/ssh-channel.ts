import type { ClientChannel } from "ssh2";
import { createChunkQueue } from "./chunk-queue.ts";
import { hostFailure } from "./host-problems.ts";
import type { Channel, Exit } from "./host.ts";
import { createTail } from "#base/tail.ts";

/** Bytes of stdout held for a slow reader, beside ssh2's own window of 2 MiB. */
const stdoutLimit = 256 * 1024;
/** A window is 2 MiB; more unread bytes than this come only from a server that does not keep to it. */
const unreadLimit = 8 * 1024 * 1024;
const stderrLimit = 64 * 1024;
/** Bytes of stdin given to ssh2 at a time. */
const sliceLimit = 64 * 1024;

/** The Channel of an ssh2 session channel whose command was started. */
export function createSshChannel(stream: ClientChannel, hostName: string, onStderr?: (bytes: Buffer) => void): Channel {
  const stderr = createTail(stderrLimit);
  const stdout = createChunkQueue(stdoutLimit, () => stream.resume());
  const waiting = new Set<(error: Error) => void>();
  const { promise: exit, resolve: resolveExit } = Promise.withResolvers<Exit>();
  let over = false;
  /** Bytes of stdin that ssh2 has sent. Together with the window they show how many the server has taken. */
  let accepted = 0;

  const gone = () =>
    hostFailure({ code: "CHANNEL_CLOSED", message: `the command on ${hostName} no longer reads its input` });
  const finish = () => {
    over = true;
    for (const reject of waiting) reject(gone());
    waiting.clear();
  };
  const close = () => {
    if (over) return;
    finish();
    stdout.discard();
    resolveExit({});
    stream.close();
    // The rest still comes until the server has closed its side too; unread it would hold the connection's memory.
    stream.resume();
  };

  stream.on("data", (chunk: Buffer) => {
    if (!stdout.push(chunk)) stream.pause();
  });
  stream.stderr.on("data", (chunk: Buffer) => {
    stderr.push(chunk);
    onStderr?.(chunk);
    // ssh2 widens the one window for both streams as stderr is read, however full stdout is.
    if (stream.readableLength > unreadLimit) close();
  });
  stream.on("error", () => undefined);
  stream.on("end", () => stdout.end());
  // The exit status can have come before any listener; ssh2 repeats it here.
  stream.on("close", (code?: number | null, signal?: string) => {
    finish();
    stdout.end();
    const lost = !wasClosedByServer(stream);
    const ended = typeof code === "number" ? { code } : typeof signal === "string" ? { signal } : {};
    void stdout.drained.then(() => resolveExit(lost ? {} : ended));
  });

  return {
    stdout,
    exit,
    close,
    stderrTail: () => stderr.text(),
    end: () => {
      if (!over) stream.end();
    },
    async write(bytes) {
      if (over || !stream.writable) throw gone();
      const whole = typeof bytes === "string" ? Buffer.from(bytes) : bytes;
      await new Promise<void>((resolve, reject) => {
        waiting.add(reject);
        // In slices, so that `bytesTaken` grows during a large write; all at once, so that no other write gets between them.
        for (let at = 0; at === 0 || at < whole.length; at += sliceLimit) {
          const slice = whole.subarray(at, at + sliceLimit);
          // ssh2 calls back when it has sent the slice; never, if the channel closes before.
          stream.write(slice, (error) => {
            accepted += slice.length;
            if (!error && at + sliceLimit < whole.length) return;
            waiting.delete(reject);
            if (error) reject(gone());
            else resolve();
          });
        }
      });
    },
    bytesTaken: () => accepted + windowOf(stream),
  };
}

/**
 * Whether the channel ended in order, by the server's close, which ssh2 answered. Else the connection was lost, and
 * output can be missing even if an exit status came.
 */
function wasClosedByServer(stream: ClientChannel): boolean {
  const { outgoing } = stream as unknown as { outgoing?: { state?: string } };
  return outgoing?.state === undefined || outgoing.state === "closed";
}

/** Bytes that the server is ready to take beyond those that it was sent. */
function windowOf(stream: ClientChannel): number {
  const { outgoing } = stream as unknown as { outgoing?: { window?: number } };
  return outgoing?.window ?? 0;
}
