import { subscribe } from "node:diagnostics_channel";
import type { Socket } from "node:net";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { runAgent } from "#agent/run.ts";
import { createLog } from "#api/log.ts";
import { codec } from "./cluster.ts";

/**
 * A part of a crowd (agent-crowd.ts): runs agents until its parent is gone. Its arguments: the milliseconds between the
 * starts of two of them, and their configurations. Asked for anything, it tells what it did.
 */

const connections: number[] = [];
// An agent makes no other TCP connections than those to controllers.
subscribe("net.client.socket", (message) => {
  (message as { readonly socket: Socket }).socket.once("connect", () => connections.push(Date.now()));
});

const messages: Record<string, number> = {};
const log = createLog({
  clock: Date.now,
  write(line) {
    const { message, error = "" } = JSON.parse(line) as { readonly message: string; readonly error?: string };
    // The refusal's code, or else the reason; not which controller it was.
    const reason =
      /\((\d+ [A-Z_]+)\)/.exec(error)?.[1] ??
      error
        .replaceAll(/[\d.]+:\d+/g, "…")
        .split(": ")
        .at(-1);
    const key = reason === "" ? message : `${message}: ${reason}`;
    messages[key] = (messages[key] ?? 0) + 1;
  },
});

const delay = monitorEventLoopDelay({ resolution: 20 });
delay.enable();
process.on("message", () => {
  process.send?.({ connections, messages, lateMs: Math.round(delay.max / 1e6) });
  delay.reset();
});
process.on("disconnect", () => process.exit());

const [apart = "0", ...configFiles] = process.argv.slice(2);
await Promise.all(
  configFiles.map(async (configFile, index) => {
    await sleep(index * Number(apart));
    await runAgent({
      configFile,
      parse: codec.parse,
      signal: new AbortController().signal,
      log,
      clock: Date.now,
      random: Math.random,
      version: "1",
      supervisor: { ready: () => undefined, stopping: () => undefined },
    });
  }),
);
