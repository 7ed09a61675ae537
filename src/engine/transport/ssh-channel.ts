import type { ClientChannel } from "ssh2";
import { createChunkQueue } from "./chunk-queue.ts";
import { hostFailure } from "./unreachable.ts";
import type { Channel, Exit } from "./host.ts";
import { createTail } from "./tail.ts";

/** Bytes of stdout held for a reader that is behind, beside ssh2's own window of 2 MiB. */
const stdoutLimit = 256 * 1024;
/** A window is 2 MiB; more unread bytes than this come only from a server that does not keep to it. */
const unreadLimit = 8 * 1024 * 1024;
const stderrLimit = 64 * 1024;

/** Our words for one of ssh2's session channels whose command was started. */
export function createSshChannel(stream: ClientChannel, hostName: string): Channel {
  const stderr = createTail(stderrLimit);
  const stdout = createChunkQueue(stdoutLimit, () => stream.resume());
  const waiting = new Set<(error: Error) => void>();
  const { promise: exit, resolve: resolveExit } = Promise.withResolvers<Exit>();
  let over = false;

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
    // ssh2 widens the one window for both streams as stderr is read, however full stdout is.
    if (stream.readableLength > unreadLimit) close();
  });
  stream.on("error", () => undefined);
  stream.on("end", () => stdout.end());
  // The exit status may have come before anybody could listen for it; it is told again here.
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
      await new Promise<void>((resolve, reject) => {
        waiting.add(reject);
        // ssh2 calls back when the window took it all; never, when the channel closed before.
        stream.write(bytes, (error) => {
          waiting.delete(reject);
          if (error) reject(gone());
          else resolve();
        });
      });
    },
  };
}

/**
 * Whether the channel ended as it should, by the server's close that ours answered. Else the connection was lost, and
 * output may be missing even if an exit status came.
 */
function wasClosedByServer(stream: ClientChannel): boolean {
  const { outgoing } = stream as unknown as { outgoing?: { state?: string } };
  return outgoing?.state === undefined || outgoing.state === "closed";
}
