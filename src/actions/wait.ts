import { connect } from "node:net";
import { z } from "zod";
import { poll, wait } from "#base/wait.ts";
import { Duration } from "#engine/step/fields.ts";
import { type ActionContext, defineAction } from "#engine/orchestrate/action.ts";

/** Seconds between two attempts. */
const PAUSE = 1;
/** Seconds that an attempt may take. */
const ATTEMPT_LIMIT = 3;

/** `address:port`, an IPv6 address in brackets. */
const TcpAddress = z
  .string()
  .regex(/^(\[[0-9A-Fa-f:.]+\]|[^\s:[\]]+):\d{1,5}$/, "must be address:port")
  .transform((text) => {
    const at = text.lastIndexOf(":");
    return { host: text.slice(0, at).replace(/^\[|\]$/g, ""), port: Number(text.slice(at + 1)) };
  })
  .refine(({ port }) => port > 0 && port < 65_536, "must have a port from 1 to 65535");

/**
 * Lets time pass, or waits until a TCP port answers the bastion; the stage's `timeout` limits it. A dry run tries the port once.
 * ```yaml
 * - { id: settle, run: wait, for: 10s }
 * - { id: answers, run: wait, tcp: "{{hostPort node.address 9090}}", each: "{{params.node_name}}", timeout: 2m }
 * ```
 */
export const waitAction = defineAction({
  name: "wait",
  summary: "Waits for some time, or until a TCP port answers.",
  outputs: [],
  bastionNames: ["tcp"],
  args: z
    .strictObject({
      for: Duration.optional().describe("How long to wait, such as 30s or 5m."),
      tcp: TcpAddress.optional().describe("The address:port that must accept a connection from the bastion."),
    })
    .refine((args) => (args.for === undefined) !== (args.tcp === undefined), "needs either “for” or “tcp”"),
  async run({ for: seconds, tcp }, context) {
    if (tcp === undefined) await wait((seconds ?? 0) * 1000, context.signal);
    else await awaitPort(tcp, context);
    return { changed: false, outputs: {} };
  },
  async plan({ tcp }, { note, signal }) {
    if (tcp !== undefined && (await askPort(tcp, signal)) !== undefined) return "unknown";
    note(tcp === undefined ? "would wait" : `${tcp.host} port ${tcp.port} answers`);
    return { changed: false, outputs: {} };
  },
});

interface TcpAddress {
  readonly host: string;
  readonly port: number;
}

/** Waits until the port accepts a connection; notes each new obstacle, and the obstacle of every tenth attempt. */
async function awaitPort(address: TcpAddress, { signal, note }: ActionContext): Promise<void> {
  let [lastNote, attempt] = ["", 0];
  const isAnswering = async (): Promise<boolean> => {
    const obstacle = await askPort(address, signal);
    if (obstacle === undefined) return true;
    attempt += 1;
    if (obstacle !== lastNote || attempt % 10 === 0)
      note(`${address.host} port ${address.port} does not answer yet: ${obstacle}`);
    lastNote = obstacle;
    return false;
  };
  await poll(isAnswering, { everyMs: PAUSE * 1000, signal });
}

/** Why the port accepts no connection; undefined: it accepts one. */
async function askPort({ host, port }: TcpAddress, signal: AbortSignal): Promise<string | undefined> {
  signal.throwIfAborted();
  const socket = connect({ host, port, timeout: ATTEMPT_LIMIT * 1000 });
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  const giveUp = (): void => resolve("stopped");
  socket
    .once("connect", () => resolve(undefined))
    .once("error", ({ message }) => resolve(message))
    .once("timeout", () => resolve(`silent for ${ATTEMPT_LIMIT} s`));
  signal.addEventListener("abort", giveUp, { once: true });
  try {
    return await promise;
  } finally {
    signal.removeEventListener("abort", giveUp);
    socket.destroy();
  }
}
