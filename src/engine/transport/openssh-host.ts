import { spawn, type ChildProcessByStdio } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Duplex, type Readable, type Writable } from "node:stream";
import type { Channel, Endpoint, ExecOptions, Host } from "./host.ts";
import { openSshFiles, type TrustedHop } from "./openssh-config.ts";
import { keyInUse, loginFailure, sshMessages } from "./openssh-failure.ts";
import { channelOpened } from "./open-channel.ts";
import { exitIn, frameCommand, outputAfter, outputBefore } from "./openssh-frame.ts";
import { environment, MasterEnded, requireStarted, startMaster, type Master } from "./openssh-master.ts";
import { createProcessChannel } from "./process-channel.ts";
import { createTail } from "#base/tail.ts";
import { HostUnreachable, hostFailure, interrupted, shellUnusable } from "./host-problems.ts";

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

interface OpenSshOptions {
  /** Jump hosts first, with the trusted keys of each host. */
  readonly hops: readonly [TrustedHop, ...TrustedHop[]];
  /** The folder that has `.ssh/config`. */
  readonly home: string;
  readonly signal: AbortSignal;
}

/**
 * Connects by this machine's own `ssh` (ADR 0019), with features that ssh2 lacks: all of ssh_config(5), security keys, GSSAPI. One ssh
 * process holds the connection, and one more serves each channel. @throws KcoreError as `Connect`
 */
export async function openOpenSsh({ hops, home, signal }: OpenSshOptions): Promise<Host> {
  const { endpoint, trusted } = hops.at(-1) as TrustedHop;
  // Short: the path of a socket has no more than 107 bytes (unix(7)), and ssh adds to it.
  const folder = await mkdtemp(join(tmpdir().length < 40 ? tmpdir() : "/tmp", "kcore-"));
  try {
    const { config, knownHosts } = openSshFiles(hops, { folder, home });
    await writeFile(join(folder, "known_hosts"), knownHosts, { mode: 0o600 });
    await writeFile(join(folder, "config"), config, { mode: 0o600 });
    const master = await startMaster(folder, endpoint.address, signal).catch((error: unknown) => {
      if (error instanceof MasterEnded) throw loginFailure(endpoint, trusted, error.stderr);
      throw error;
    });
    return heldHost(endpoint, { folder, master, ...keyInUse(master.stderr(), trusted) });
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

interface HeldConnection {
  readonly folder: string;
  readonly master: Master;
  readonly fingerprint: string;
  readonly hostKey?: string;
}

function heldHost({ name, address }: Endpoint, { folder, master, fingerprint, hostKey }: HeldConnection): Host {
  const channels = new Set<Channel>();
  const streams = new Set<Duplex>();
  let reason: string | undefined;
  const closed = master.ended.then(async () => {
    reason ??= `the connection to ${name} was lost: ${sshMessages(master.stderr()).at(-1) ?? "ssh ended"}`;
    for (const channel of channels) channel.close();
    for (const stream of streams) stream.destroy();
    await rm(folder, { recursive: true, force: true }).catch(() => undefined);
    return reason;
  });
  const lost = (what: string, detail?: string) =>
    new HostUnreachable("lost", { message: `${what}: ${reason ?? `the connection to ${name} is gone`}`, detail });
  /** Starts an ssh process for one channel; `ProxyCommand=false` prevents a connection of its own when the master's is gone. */
  const client = (...words: string[]): Child => {
    const first = ["-F", join(folder, "config"), "-o", "ProxyCommand=false", "-S", join(folder, "c"), "-T"];
    const child = spawn("ssh", [...first, ...words], {
      stdio: ["pipe", "pipe", "pipe"],
      env: environment(),
      detached: true,
    });
    return requireStarted(child, name);
  };

  const opened = async (what: string, caller: AbortSignal | undefined, child: Child, opening: Promise<void>) => {
    try {
      await channelOpened({ host: name, what, caller }, opening);
    } catch (error) {
      child.kill();
      throw error;
    }
  };

  const exec = async (command: string, { signal, input, onStderr }: ExecOptions = {}): Promise<Channel> => {
    const what = `starting a command on ${name}`;
    if (signal?.aborted) throw interrupted(what, signal.reason);
    if (reason !== undefined) throw lost(what);
    const mark = randomBytes(8).toString("hex");
    const child = client("--", address, frameCommand(command, mark));
    const begun = Promise.withResolvers<void>();
    const output = createTail(1000);
    const filter = outputAfter(`${mark}\n`, begun.resolve);
    const commandStderr = onStderr && outputBefore(`\n${mark} `);
    const channel = createProcessChannel({
      name,
      child,
      filter: (chunk) => {
        output.push(chunk);
        return filter(chunk);
      },
      endOf: (_, stderr) => exitIn(stderr, mark),
      kill: true,
      ...(commandStderr && { onStderr: (chunk) => onStderr(commandStderr(chunk)) }),
    });
    channels.add(channel);
    void channel.exit.then(() => {
      channels.delete(channel);
      const stderr = channel.stderrTail();
      // 255 is ssh's own end: the connection is gone.
      const isShells = child.exitCode !== null && child.exitCode !== 255;
      if (/open refused|request failed/.test(stderr)) begun.reject(sessionRefused(name, stderr));
      else
        begun.reject(
          isShells ? hostFailure(shellUnusable(name, `${output.text()}${stderr}`)) : lost(what, stderr.trim()),
        );
    });
    if (input !== undefined) channel.write(input).catch(() => undefined);
    await opened(what, signal, child, begun.promise);
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
    await opened(what, signal, child, begun.promise);
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

function sessionRefused(name: string, said: string): Error {
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
    detail: sshMessages(said).join("\n"),
  });
}
