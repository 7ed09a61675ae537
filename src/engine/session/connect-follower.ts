import { retry, within } from "#base/wait.ts";
import { KcoreError } from "#errors/problem.ts";
import { type FollowerChannel, type FollowerOptions, openFollowerChannel } from "./follower-channel.ts";
import { unreachableCodes } from "./problems.ts";
import type { SessionOptions } from "./session.ts";
import type { Host } from "#engine/transport/host.ts";

interface FollowerConnectOptions extends Omit<FollowerOptions, "host"> {
  readonly session: SessionOptions;
  readonly attempt: number;
  /** Once aborted, no further attempt is made. */
  readonly stopping: AbortSignal;
  /** Whether `stopping` also ends the attempt under way. */
  readonly mayStop: boolean;
  readonly onHost: (host: Host) => void;
}

/** Milliseconds after which a slow connection or login shell is reported. */
const quiet = 4_000;

/** Makes one connection and starts a follower on the node. @throws KcoreError, with nothing left open */
export async function connectFollower({
  session,
  attempt,
  stopping,
  mayStop,
  onHost,
  ...follower
}: FollowerConnectOptions): Promise<FollowerChannel> {
  const { endpoint, connect, connectTimeout: timeout, emit, connectSlot } = session;
  const node = session.node.name;
  const emitWaiting = (reason: string): void => emit({ type: "node.waiting", node, reason });
  emit({ type: "node.connecting", node, attempt });
  const release = await connectSlot();
  let host: Host | undefined;
  try {
    const wait = setTimeout(() => emitWaiting("it cannot be reached yet"), quiet);
    host = await withRetries(() => connect(endpoint, { timeout, ...(mayStop && { signal: stopping }) }), stopping)
      .catch(async (error: unknown) => {
        if (attempt > 1 && isUnreachable(error) && (await tryUnlock(session, stopping)))
          emitWaiting("its disk is unlocked, and it goes on booting");
        throw error;
      })
      .finally(() => clearTimeout(wait));
    emit({ type: "node.connected", node, fingerprint: host.fingerprint });
    onHost(host);
    return await openFollowerChannel({
      ...follower,
      host,
      quiet,
      onSilence: () => emitWaiting("its login shell has not answered yet"),
    });
  } catch (error) {
    await host?.close();
    throw error;
  } finally {
    release();
  }
}

/** Unlocks the root disk of a machine that waits for it; false if none waits, or the run stops. @throws KcoreError UNLOCK_FAILED */
async function tryUnlock({ unlock }: SessionOptions, stopping: AbortSignal): Promise<boolean> {
  try {
    return (await unlock?.(stopping)) ?? false;
  } catch (error) {
    if (isUnreachable(error) || stopping.aborted) return false;
    throw error;
  }
}

function isUnreachable(error: unknown): boolean {
  return error instanceof KcoreError && error.problems.every(({ code }) => unreachableCodes.has(code));
}

/**
 * Repeats an attempt that a busy sshd dropped (MaxStartups, F-22). Without a free file descriptor on the bastion, other nodes' connections
 * must end first, which can take a minute (F-30).
 */
function withRetries(connect: () => Promise<Host>, stopping: AbortSignal): Promise<Host> {
  let attempt = 0;
  const mayHelp = (error: unknown): boolean => {
    attempt++;
    const reason = error instanceof KcoreError && "reason" in error ? error.reason : undefined;
    return attempt < (reason === "busy" ? 6 : reason === "files" ? 30 : 1) && !stopping.aborted;
  };
  return retry(connect, { mayHelp, everyMs: () => 250 * Math.min(attempt, 6) * (1 + Math.random()) });
}

/** Whether the SSH connection of a channel that has just ended is gone, too. The connection can end some milliseconds after its channel. */
export async function isHostGone(host: Host | undefined): Promise<boolean> {
  if (host === undefined) return true;
  const isClosed = host.closed.then(() => true);
  return (await within(100, isClosed)) ?? false;
}
