import { spawn, type ChildProcessByStdio } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Duplex, type Readable, type Writable } from "node:stream";
import { orAborted, startDeadline, DeadlinePassed } from "./deadline.ts";
import type { Channel, ExecOptions, Exit, Host } from "./host.ts";
import { openSshFiles, type Hop } from "./openssh-config.ts";
import { keyInUse, loginFailure, saidBy } from "./openssh-failure.ts";
import { createProcessChannel } from "./process-channel.ts";
import { createTail } from "./tail.ts";
import { HostUnreachable, hostFailure, interrupted } from "./unreachable.ts";

/** Milliseconds for the server to open a channel. */
const openLimit = 30_000;

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

/** Holds one connection (ControlMaster) as long as stdin is open: it ends with us, however we end. Given its folder, then ssh. */
const holder = `exec 3<&0
folder=$1
shift
"$@" 3<&- &
ssh=$!
{ read -r end <&3; kill "$ssh"; } >/dev/null 2>&1 &
watch=$!
wait "$ssh"
status=$?
kill "$watch" 2>/dev/null
rm -rf "$folder"
exit "$status"`;

/** What ssh may need of our environment, and nothing else of it: agents, Kerberos, and where a security key asks for its PIN. */
const needed =
  /^(PATH|HOME|USER|LOGNAME|SSH_AUTH_SOCK|SSH_ASKPASS|SSH_SK_.*|KRB5.*|DISPLAY|WAYLAND_DISPLAY|XDG_RUNTIME_DIR)$/;

function environment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => needed.test(name)));
}

export interface OpenSshOptions {
  /** Jump hosts first, and what is believed about each host's key. */
  readonly hops: readonly [Hop, ...Hop[]];
  /** Where `.ssh/config` is looked for. */
  readonly home: string;
  readonly signal: AbortSignal;
}

/**
 * A connection made by this machine's own `ssh` (ADR 0019): with what ssh_config(5), security keys and GSSAPI can do that ssh2
 * cannot. One process holds it, a short one each opens a channel on it. @throws KcoreError as `Connect`
 */
export async function openOpenSsh({ hops, home, signal }: OpenSshOptions): Promise<Host> {
  const { endpoint, trusted } = hops.at(-1) as Hop;
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
    return createHost({
      name: endpoint.name,
      folder,
      address: endpoint.address,
      master,
      ...keyInUse(master.said(), trusted),
    });
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

class MasterEnded extends Error {
  readonly stderr: string;

  constructor(stderr: string) {
    super("ssh ended");
    this.stderr = stderr;
  }
}

interface Master {
  readonly said: () => string;
  readonly ended: Promise<void>;
  readonly end: () => void;
}

async function startMaster(folder: string, address: string, signal: AbortSignal): Promise<Master> {
  const socket = join(folder, "c");
  const words = ["ssh", "-F", join(folder, "config"), "-v", "-N", "-T", "-M", "-S", socket, "--", address];
  const child = spawn("/bin/sh", ["-c", holder, "sh", folder, ...words], {
    stdio: ["pipe", "ignore", "pipe"],
    env: environment(),
    // Ctrl-C concerns the views only.
    detached: true,
  });
  const tail = createTail(64 * 1024);
  child.stdin.on("error", () => undefined);
  const ended = new Promise<void>((resolve) => {
    child.once("error", () => resolve());
    child.once("close", () => resolve());
  });
  const end = () => child.stdin.destroy();
  const ready = new Promise<void>((resolve, reject) => {
    child.stderr.on("data", (chunk: Buffer) => {
      tail.push(chunk);
      // It listens when it has logged in, and says more behind that. What it says may be a jump host's, its socket is not.
      if (existsSync(socket)) resolve();
    });
    void ended.then(() => reject(new MasterEnded(tail.text())));
  });
  try {
    await orAborted(ready, signal);
  } catch (error) {
    end();
    await ended;
    throw error;
  }
  return { said: () => tail.text(), ended, end };
}

interface HostParts {
  readonly name: string;
  readonly folder: string;
  readonly address: string;
  readonly master: Master;
  readonly fingerprint: string;
  readonly hostKey?: string;
}

function createHost({ name, folder, address, master, fingerprint, hostKey }: HostParts): Host {
  const channels = new Set<Channel>();
  const streams = new Set<Duplex>();
  let reason: string | undefined;
  const closed = master.ended.then(async () => {
    reason ??= `the connection to ${name} was lost: ${saidBy(master.said()).at(-1) ?? "ssh ended"}`;
    for (const channel of channels) channel.close();
    for (const stream of streams) stream.destroy();
    await rm(folder, { recursive: true, force: true });
    return reason;
  });
  const lost = (what: string, detail?: string) =>
    new HostUnreachable("lost", { message: `${what}: ${reason ?? `the connection to ${name} is gone`}`, detail });
  /** Never a connection of its own, whatever becomes of the master's. */
  const client = (...words: string[]): Child =>
    spawn("ssh", ["-F", join(folder, "config"), "-o", "ProxyCommand=false", "-S", join(folder, "c"), "-T", ...words], {
      stdio: ["pipe", "pipe", "pipe"],
      env: environment(),
      detached: true,
    });

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

  const exec = async (command: string, { signal, input }: ExecOptions = {}): Promise<Channel> => {
    const what = `starting a command on ${name}`;
    if (signal?.aborted) throw interrupted(what, signal.reason);
    if (reason !== undefined) throw lost(what);
    const mark = randomBytes(8).toString("hex");
    const child = client("--", address, framed(command, mark));
    const begun = Promise.withResolvers<void>();
    const channel = createProcessChannel({
      name,
      child,
      filter: behind(`${mark}\n`, begun.resolve),
      endOf: (_, stderr) => endIn(stderr, mark),
      kill: true,
    });
    channels.add(channel);
    void channel.exit.then(() => {
      channels.delete(channel);
      const said = channel.stderrTail();
      begun.reject(/open refused|request failed/.test(said) ? refused(name, said) : lost(what, said.trim()));
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

/** The command, as an argument of sh: told when it begins, and with what it ended, since ssh's own failures look like 255. */
function framed(command: string, mark: string): string {
  const script = `echo ${mark}; /bin/sh -c "$0"; s=$?; printf "\\n${mark} %s\\n" "$s" >&2; exit "$s"`;
  return `exec /bin/sh -c '${script}' '${command.replaceAll("'", String.raw`'\''`)}'`;
}

/** Passes on what comes behind the mark, and drops what a login shell's own files print before it. */
function behind(mark: string, onFound: () => void): (chunk: Buffer) => Buffer {
  let before: Buffer | undefined = Buffer.alloc(0);
  return (chunk) => {
    if (before === undefined) return chunk;
    before = Buffer.concat([before, chunk]);
    const at = before.indexOf(mark);
    if (at === -1) {
      before = before.subarray(-(mark.length - 1));
      return Buffer.alloc(0);
    }
    const rest = before.subarray(at + mark.length);
    before = undefined;
    onFound();
    return rest;
  };
}

function endIn(stderr: string, mark: string): { readonly exit: Exit; readonly stderr: string } {
  const found = new RegExp(`\\n${mark} (\\d+)\\n`).exec(stderr);
  if (!found) return { exit: {}, stderr };
  return {
    exit: { code: Number(found[1]) },
    stderr: stderr.slice(0, found.index) + stderr.slice(found.index + found[0].length),
  };
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
