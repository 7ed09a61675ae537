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

/** How long QEMU may take for an answer, in milliseconds: one thread of a busy machine gives it. */
const answerLimitMs = 300_000;

/** A connection to a QEMU's monitor (QMP, QEMU's docs/interop/qmp-spec). One command at a time. */
export type Qmp = Awaited<ReturnType<typeof openQmp>>;

/** Connects to the monitor at `path`, waiting until it is there as long as `lives`. */
export async function openQmp(path: string, lives: () => Promise<boolean>) {
  const socket = await dial(path, lives);
  const seen: QmpMessage[] = [];
  const answers: QmpMessage[] = [];
  let news = Promise.withResolvers<void>();
  const tell = (): void => {
    news.resolve();
    news = Promise.withResolvers();
  };
  let closed = false;
  socket.on("close", () => {
    closed = true;
    tell();
  });
  const lines = createInterface({ input: socket });
  lines.on("error", () => {}); // The interface repeats the socket's errors.
  lines.on("line", (line) => {
    const message = JSON.parse(line) as QmpMessage;
    if (message.event !== undefined) seen.push(message);
    else if ("return" in message || message.error) answers.push(message);
    tell();
  });
  const until = async <T>(what: string, find: () => T | undefined): Promise<T> => {
    const end = performance.now() + answerLimitMs;
    for (;;) {
      const found = find();
      if (found !== undefined) return found;
      if (closed) throw nodeFailed({ message: `QEMU ended before ${what}` });
      const left = end - performance.now();
      if (left <= 0) throw nodeFailed({ message: `QEMU said nothing for five minutes: ${what}` });
      await within(left, news.promise);
    }
  };
  const execute = async (command: string, args?: object): Promise<unknown> => {
    socket.write(`${JSON.stringify({ execute: command, ...(args && { arguments: args }) })}\n`);
    const answer = await until(`it answered ${command}`, () => answers.shift());
    if (answer.error) throw nodeFailed({ message: `QEMU refuses ${command}: ${answer.error.desc}` });
    return answer.return;
  };
  await execute("qmp_capabilities");
  return {
    /** Runs a command and returns its result. Throws `LAB_NODE_FAILED` with QEMU's words. */
    execute,
    /** Waits for an event of this name whose data `fits`; events since the connection was made count. */
    event: async (name: string, fits: (data: Record<string, unknown>) => boolean = () => true) => {
      await until(`the event ${name}`, () => seen.find(({ event, data = {} }) => event === name && fits(data)));
    },
    close: () => socket.destroy(),
  };
}

/** Connects to a socket whose file may be there before a program listens on it. */
export async function dial(path: string, lives: () => Promise<boolean>): Promise<Socket> {
  const look = async (): Promise<Socket | undefined> => {
    const socket = connect(path);
    try {
      await once(socket, "connect");
      // The close event suffices.
      return socket.on("error", () => {});
    } catch (error) {
      if (!(await lives())) throw nodeFailed({ message: `the machine ended: ${(error as Error).message}` });
      return undefined;
    }
  };
  return poll(look, { everyMs: 30 });
}
