import type { Duplex } from "node:stream";
import type { Client, ClientChannel } from "ssh2";
import { HostUnreachable, hostFailure, messageOf } from "./host-problems.ts";
import type { Channel, ExecOptions, Host } from "./host.ts";
import { watchLiveness } from "./liveness.ts";
import { createEarlyExec } from "./early-exec.ts";
import { channelOpened } from "./open-channel.ts";
import { createSshChannel } from "./ssh-channel.ts";

/** Milliseconds for the disconnect message to be sent before the socket is destroyed. */
const closeLimit = 1000;

export interface SshHostParts {
  readonly client: Client;
  readonly socket: Duplex;
  readonly name: string;
  readonly fingerprint: string;
  readonly hostKey?: string;
  /** Milliseconds without a sign of life after which the connection counts as lost. */
  readonly silence: number;
}

/** The Host of an ssh2 client that is ready. */
export function createSshHost({ client, socket, name, fingerprint, hostKey, silence }: SshHostParts): Host {
  const { promise: closed, resolve: resolveClosed } = Promise.withResolvers<string>();
  let reason: string | undefined;
  const earlyExec = createEarlyExec(client);

  const stopWatching = watchLiveness(socket, silence, () => {
    reason ??= `${name} gave no sign of life for ${silence / 1000} s`;
    socket.destroy();
  });
  client.on("error", (error) => (reason ??= `the connection to ${name} was lost: ${messageOf(error)}`));
  client.on("close", () => {
    stopWatching();
    resolveClosed((reason ??= `${name} closed the connection`));
  });

  const lost = (what: string, cause?: unknown) =>
    new HostUnreachable("lost", { message: `${what}: ${reason ?? `the connection to ${name} is gone`}` }, cause);

  const open = async <T>(
    what: string,
    caller: AbortSignal | undefined,
    start: (done: (error: Error | undefined, opened?: T) => void) => void,
    dispose: (late: T) => void,
    refuse: (error: Error) => Error,
  ): Promise<T> => {
    // ssh2 throws when there is no connection any more.
    const opening = new Promise<T>((resolve, reject) => {
      start((error, opened) => (error || opened === undefined ? reject(error as Error) : resolve(opened)));
    }).catch((error: unknown) => {
      // An error with a reason code (RFC 4254, section 5.1) is the server's refusal; any other error can mean a lost connection.
      if ((error as { reason?: unknown }).reason === undefined && !isOpenSocket(socket)) throw lost(what, error);
      throw refuse(error as Error);
    });
    return channelOpened({ host: name, what, caller }, opening, dispose);
  };

  const exec = async (command: string, { signal, input, onStderr }: ExecOptions = {}): Promise<Channel> => {
    const opened = await open<{ stream: ClientChannel; rest: Uint8Array | undefined }>(
      `starting a command on ${name}`,
      signal,
      (done) => earlyExec.exec(command, input, done),
      ({ stream }) => stream.close(),
      (error) =>
        hostFailure(
          {
            code: "CHANNEL_REFUSED",
            message: `${name} refuses another session on this connection: ${messageOf(error)}`,
            hint: "sshd's MaxSessions limits them; a forced command or a missing shell may also be the cause",
          },
          error,
        ),
    );
    const channel = createSshChannel(opened.stream, name, onStderr);
    signal?.addEventListener("abort", () => channel.close(), { once: true });
    // A failure shows in the channel's end; no caller waits for this write.
    if (opened.rest) channel.write(opened.rest).catch(() => undefined);
    return channel;
  };

  const forward: Host["forward"] = async (address, port, { signal } = {}) => {
    const stream = await open<ClientChannel>(
      `connecting from ${name} to ${address} port ${port}`,
      signal,
      (done) => {
        earlyExec.otherChannel();
        client.forwardOut("127.0.0.1", 0, address, port, done);
      },
      (late) => late.close(),
      (error) =>
        hostFailure(
          {
            code: "FORWARD_FAILED",
            message: `${name} does not connect to ${address} port ${port}: ${messageOf(error)}`,
            hint: "is that port open from there, and does its sshd allow it (AllowTcpForwarding, PermitOpen)?",
          },
          error,
        ),
    );
    stream.on("error", () => undefined);
    return stream;
  };

  const close = async () => {
    reason ??= "closed by kcore";
    // kcore does not wait for the server's close: that would cost a round trip, and the time of the server's clean-up.
    socket.once("finish", () => socket.destroy());
    client.end();
    const timer = setTimeout(() => socket.destroy(), closeLimit);
    await closed;
    clearTimeout(timer);
  };
  return { name, fingerprint, ...(hostKey !== undefined && { hostKey }), closed, exec, forward, close };
}

function isOpenSocket(socket: Duplex): boolean {
  return socket.writable && !socket.destroyed;
}
