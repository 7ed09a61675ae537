import { spawn, type ChildProcessByStdio } from "node:child_process";
import { randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { Duplex, type Readable, type Writable } from "node:stream";
import { orAborted, startDeadline, DeadlinePassed } from "./deadline.ts";
import type { Channel, ExecOptions, Host } from "./host.ts";
import { saidBy } from "./openssh-failure.ts";
import { before, behind, endIn, framed } from "./openssh-frame.ts";
import { environment, started, type Master } from "./openssh-master.ts";
import { createProcessChannel } from "./process-channel.ts";
import { createTail } from "#base/tail.ts";
import { HostUnreachable, hostFailure, interrupted, shellUnusable } from "./unreachable.ts";

/** Milliseconds for the server to open a channel. */
const openLimit = 30_000;

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

export interface HostParts {
  readonly name: string;
  readonly folder: string;
  readonly address: string;
  readonly master: Master;
  readonly fingerprint: string;
  readonly hostKey?: string;
}

/** The Host of a connection that is held. */
export function createOpenSshHost({ name, folder, address, master, fingerprint, hostKey }: HostParts): Host {
  const channels = new Set<Channel>();
  const streams = new Set<Duplex>();
  let reason: string | undefined;
  const closed = master.ended.then(async () => {
    reason ??= `the connection to ${name} was lost: ${saidBy(master.said()).at(-1) ?? "ssh ended"}`;
    for (const channel of channels) channel.close();
    for (const stream of streams) stream.destroy();
    await rm(folder, { recursive: true, force: true }).catch(() => undefined);
    return reason;
  });
  const lost = (what: string, detail?: string) =>
    new HostUnreachable("lost", { message: `${what}: ${reason ?? `the connection to ${name} is gone`}`, detail });
  /** Never a connection of its own, even when the master's is gone. */
  const client = (...words: string[]): Child => {
    const first = ["-F", join(folder, "config"), "-o", "ProxyCommand=false", "-S", join(folder, "c"), "-T"];
    const child = spawn("ssh", [...first, ...words], {
      stdio: ["pipe", "pipe", "pipe"],
      env: environment(),
      detached: true,
    });
    return started(child, name);
  };

  const within = async <T>(what: string, caller: AbortSignal | undefined, child: Child, opening: Promise<T>) => {
    const deadline = startDeadline(openLimit, caller);
    try {
      return await orAborted(opening, deadline.signal);
    } catch (error) {
      child.kill();
      if (error instanceof DeadlinePassed)
        throw new HostUnreachable("timeout", { message: `${name} does not open a channel: ${error.message}` }, error);
      if (caller?.aborted) throw interrupted(what, error);
      throw error;
    } finally {
      deadline.release();
    }
  };

  const exec = async (command: string, { signal, input, onStderr }: ExecOptions = {}): Promise<Channel> => {
    const what = `starting a command on ${name}`;
    if (signal?.aborted) throw interrupted(what, signal.reason);
    if (reason !== undefined) throw lost(what);
    const mark = randomBytes(8).toString("hex");
    const child = client("--", address, framed(command, mark));
    const begun = Promise.withResolvers<void>();
    const words = createTail(1000);
    const filter = behind(`${mark}\n`, begun.resolve);
    const own = onStderr && before(`\n${mark} `);
    const channel = createProcessChannel({
      name,
      child,
      filter: (chunk) => {
        words.push(chunk);
        return filter(chunk);
      },
      endOf: (_, stderr) => endIn(stderr, mark),
      kill: true,
      ...(own && { onStderr: (chunk) => onStderr(own(chunk)) }),
    });
    channels.add(channel);
    void channel.exit.then(() => {
      channels.delete(channel);
      const said = channel.stderrTail();
      // 255 is ssh's own end: the connection is gone.
      const isShells = child.exitCode !== null && child.exitCode !== 255;
      if (/open refused|request failed/.test(said)) begun.reject(refused(name, said));
      else
        begun.reject(isShells ? hostFailure(shellUnusable(name, `${words.text()}${said}`)) : lost(what, said.trim()));
    });
    if (input !== undefined) channel.write(input).catch(() => undefined);
    await within(what, signal, child, begun.promise);
    signal?.addEventListener("abort", () => channel.close(), { once: true });
    return channel;
  };

  const forward: Host["forward"] = async (target, port, { signal } = {}) => {
    const what = `connecting from ${name} to ${target} port ${port}`;
    if (reason !== undefined) throw lost(what);
    const child = client("-v", "-W", `${target.includes(":") ? `[${target}]` : target}:${port}`, "--", address);
    const begun = Promise.withResolvers<void>();
    const tail = createTail(4096);
    child.stderr.on("data", (chunk: Buffer) => {
      tail.push(chunk);
      if (tail.text().includes("master session id")) begun.resolve();
    });
    child.once("error", () => begun.reject(lost(what)));
    child.once("close", () =>
      begun.reject(reason === undefined ? notForwarded(name, target, port, tail.text()) : lost(what)),
    );
    await within(what, signal, child, begun.promise);
    const stream = Duplex.from({ readable: child.stdout, writable: child.stdin });
    stream.on("error", () => undefined);
    stream.once("close", () => {
      streams.delete(stream);
      child.kill();
    });
    streams.add(stream);
    return stream;
  };

  const close = async () => {
    reason ??= "closed by kcore";
    for (const channel of channels) channel.close();
    master.end();
    await closed;
  };
  return { name, fingerprint, ...(hostKey !== undefined && { hostKey }), closed, exec, forward, close };
}

function refused(name: string, said: string): Error {
  return hostFailure({
    code: "CHANNEL_REFUSED",
    message: `${name} refuses another session on this connection`,
    hint: "sshd's MaxSessions limits them; a forced command or a missing shell may also be the cause",
    detail: said.trim(),
  });
}

function notForwarded(name: string, target: string, port: number, said: string): Error {
  return hostFailure({
    code: "FORWARD_FAILED",
    message: `${name} does not connect to ${target} port ${port}`,
    hint: "is that port open from there, and does its sshd allow it (AllowTcpForwarding, PermitOpen)?",
    detail: saidBy(said).join("\n"),
  });
}
