import { connect, isIPv6, type Socket } from "node:net";
import { DeadlinePassed } from "./deadline.ts";
import { HostUnreachable, interrupted, messageOf } from "./host-problems.ts";
import type { UnreachableReason } from "./host-problems.ts";

/** The other end of a connection. */
export interface SocketTarget {
  /** For messages. */
  readonly name: string;
  readonly port: number;
  /** Tried in this order, as in RFC 8305, until one connects. */
  readonly addresses: readonly string[];
}

/**
 * Opens a TCP connection without Nagle's delay, which ssh2 would leave on: 42 ms per exchange.
 * @throws KcoreError HOST_UNREACHABLE; INTERRUPTED when the caller aborts; the signal's reason if it was aborted before.
 */
export async function openSocket({ name, port, addresses }: SocketTarget, signal: AbortSignal): Promise<Socket> {
  const where = `${addresses[0] ?? "?"} port ${port}`;
  signal.throwIfAborted();
  const socket = connect({
    host: addresses[0] ?? "",
    port,
    noDelay: true,
    ...(addresses.length > 1 && {
      host: name,
      autoSelectFamily: true,
      lookup: (_name, _options, done) => {
        const all = addresses.map((address) => ({ address, family: isIPv6(address.split("%")[0] ?? "") ? 6 : 4 }));
        done(null, all);
      },
    }),
  });
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once("connect", resolve);
      socket.once("error", reject);
      signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
    });
    socket.removeAllListeners("error");
    return socket;
  } catch (error) {
    socket.on("error", () => undefined);
    socket.destroy();
    if (signal.aborted && error === signal.reason && !(error instanceof DeadlinePassed))
      throw interrupted(`connecting to ${name}`, error);
    throw unreachable(name, where, error);
  }
}

const hints: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nothing listens there: is sshd running, and is this its port?",
  EHOSTUNREACH: "no route to it: is the machine up, and is this its address?",
  ENETUNREACH: "no route to its network from here",
  ENETDOWN: "the network of this machine is down",
  EMFILE: "this machine allows too few open files: raise “ulimit -n”, or lower the concurrency",
  ENFILE: "this machine has too many open files (fs.file-max)",
  ETIMEDOUT: "it does not answer: is the machine up, and does a firewall allow this port?",
};

const reasons: Readonly<Record<string, UnreachableReason>> = {
  ECONNREFUSED: "refused",
  EMFILE: "files",
  ENFILE: "files",
  ETIMEDOUT: "timeout",
};

function unreachable(name: string, where: string, cause: unknown): Error {
  if (cause instanceof DeadlinePassed) {
    const hint = hints["ETIMEDOUT"] ?? "";
    return new HostUnreachable(
      "timeout",
      { message: `${name} does not answer at ${where}: ${cause.message}`, hint },
      cause,
    );
  }
  const code = codeOf(cause) ?? "";
  const hint = hints[code];
  return new HostUnreachable(
    reasons[code] ?? "lost",
    { message: `${name} cannot be reached at ${where}: ${messageOf(cause) || code}`, hint },
    cause,
  );
}

/** The system's error code; after several tries (RFC 8305), the code of the first. */
function codeOf(error: unknown): string | undefined {
  if (error instanceof AggregateError) return codeOf(error.errors[0]);
  const code = (error as NodeJS.ErrnoException | undefined)?.code;
  return typeof code === "string" ? code : undefined;
}
