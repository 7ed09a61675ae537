import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { poll, within } from "#base/wait.ts";
import { nodeFailed } from "../processes.ts";

interface QmpMessage {
  readonly return?: unknown;
  readonly error?: { readonly desc: string };
  readonly event?: string;
  readonly data?: Record<string, unknown>;
}

/** Milliseconds that QEMU may take for an answer: on a busy machine, its one thread may be slow. */
const answerLimitMs = 300_000;

/** A connection to a QEMU's monitor (QMP, QEMU's docs/interop/qmp-spec). One command at a time. */
export type Qmp = Awaited<ReturnType<typeof openQmp>>;

/** Connects to the monitor at `path`; waits for it while `lives` is true. Throws `LAB_NODE_FAILED`, as its functions do. */
export async function openQmp(path: string, lives: () => Promise<boolean>) {
  const socket = await dial(path, lives);
  const events: QmpMessage[] = [];
  const answers: QmpMessage[] = [];
  let news = Promise.withResolvers<void>();
  const announce = (): void => {
    news.resolve();
    news = Promise.withResolvers();
  };
  let closed = false;
  socket.on("close", () => {
    closed = true;
    announce();
  });
  const lines = createInterface({ input: socket });
  lines.on("error", () => {}); // The interface repeats the socket's errors, after which the socket closes.
  lines.on("line", (line) => {
    const message = JSON.parse(line) as QmpMessage;
    if (message.event !== undefined) events.push(message);
    else if ("return" in message || message.error) answers.push(message);
    announce();
  });
  const until = async <T>(what: string, find: () => T | undefined): Promise<T> => {
    const end = performance.now() + answerLimitMs;
    for (;;) {
      const found = find();
      if (found !== undefined) return found;
      if (closed) throw nodeFailed({ message: `QEMU ended before ${what}` });
      const left = end - performance.now();
      if (left <= 0) throw nodeFailed({ message: `QEMU did not send ${what} within five minutes` });
      await within(left, news.promise);
    }
  };
  const execute = async (command: string, args?: object): Promise<unknown> => {
    socket.write(`${JSON.stringify({ execute: command, ...(args && { arguments: args }) })}\n`);
    const answer = await until(`its answer to ${command}`, () => answers.shift());
    if (answer.error) throw nodeFailed({ message: `QEMU refuses ${command}: ${answer.error.desc}` });
    return answer.return;
  };
  await execute("qmp_capabilities");
  return {
    /** Runs a command and returns its result. Throws `LAB_NODE_FAILED` with QEMU's message. */
    execute,
    /** Waits for an event of this name whose data `fits` accepts; all events since the connection count. */
    event: async (name: string, fits: (data: Record<string, unknown>) => boolean = () => true) => {
      await until(`the event ${name}`, () => events.find(({ event, data = {} }) => event === name && fits(data)));
    },
    close: () => socket.destroy(),
  };
}

/** Connects to a socket, as soon as a program listens on it. Throws `LAB_NODE_FAILED` once `lives` is false. */
export async function dial(path: string, lives: () => Promise<boolean>): Promise<Socket> {
  const tryToConnect = async (): Promise<Socket | undefined> => {
    const socket = connect(path);
    try {
      await once(socket, "connect");
      // After an error the socket closes, and the caller listens to that.
      return socket.on("error", () => {});
    } catch (error) {
      if (!(await lives())) throw nodeFailed({ message: `the machine ended: ${(error as Error).message}` });
      return undefined;
    }
  };
  return poll(tryToConnect, { everyMs: 30 });
}
