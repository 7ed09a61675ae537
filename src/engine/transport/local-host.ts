import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { homedir, userInfo } from "node:os";
import type { Duplex } from "node:stream";
import { withDeadline } from "./deadline.ts";
import { hostFailure, interrupted } from "./host-problems.ts";
import type { Channel, ExecOptions, Host } from "./host.ts";
import { createProcessChannel } from "./process-channel.ts";
import { openSocket } from "./socket.ts";

const forwardLimit = 30_000;

/** This machine as a Host: commands run by /bin/sh, each in a session of its own, as an SSH login would start them. */
export function openLocal(name: string): Host {
  const { promise: closed, resolve: resolveClosed } = Promise.withResolvers<string>();
  const channels = new Set<Channel>();
  const streams = new Set<Duplex>();
  let open = true;
  const check = () => {
    if (!open) throw hostFailure({ code: "CHANNEL_CLOSED", message: `the connection to ${name} was closed` });
  };
  return {
    name,
    fingerprint: "",
    closed,
    // oxlint-disable-next-line require-await -- the interface's promise; a thrown error must reject
    async exec(command: string, { signal, input, onStderr }: ExecOptions = {}) {
      check();
      if (signal?.aborted) throw interrupted(`starting a command on ${name}`, signal.reason);
      const channel = startCommand(name, command, onStderr);
      channels.add(channel);
      void channel.exit.then(() => channels.delete(channel));
      signal?.addEventListener("abort", () => channel.close(), { once: true });
      if (input !== undefined) channel.write(input).catch(() => undefined);
      return channel;
    },
    async forward(address, port, { signal } = {}) {
      check();
      const target = { name: address, port, addresses: [address] };
      const stream = await withDeadline(forwardLimit, signal, (limited) => openSocket(target, limited));
      stream.on("error", () => undefined);
      streams.add(stream);
      stream.once("close", () => streams.delete(stream));
      return stream;
    },
    async close() {
      open = false;
      for (const channel of channels) channel.close();
      for (const stream of streams) stream.destroy();
      resolveClosed("closed by kcore");
      await closed;
    },
  };
}

function startCommand(name: string, command: string, onStderr: ExecOptions["onStderr"]): Channel {
  const { username, shell } = userInfo();
  const child = spawn("/bin/sh", ["-c", command], {
    stdio: ["pipe", "pipe", "pipe"],
    // sshd, too, uses / for a user without a home.
    cwd: existsSync(homedir()) ? homedir() : "/",
    detached: true,
    // The environment of a login: kcore's own, which can hold secrets, must not reach a command.
    env: {
      HOME: homedir(),
      USER: username,
      LOGNAME: username,
      SHELL: shell ?? "/bin/sh",
      PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/run/wrappers/bin:/run/current-system/sw/bin",
    },
  });
  return createProcessChannel({ name, child, ...(onStderr && { onStderr: (chunk) => chunk && onStderr(chunk) }) });
}
