import { open, unlink, type FileHandle } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import { once } from "node:events";
import { join } from "node:path";
import { poll } from "#base/wait.ts";
import type { RunControl } from "#engine/events/event.ts";
import { inWorkingFolder } from "./working-folder.ts";
import type { RunFolder } from "./run-folder.ts";

/** The socket's name in a run's folder. */
export const SOCKET_NAME = "socket";

/** A view's first message: the byte of the record from which it wants events, its name, and whether it can answer. */
export interface Hello {
  readonly type: "hello";
  readonly from: number;
  readonly by: string;
  readonly answers: boolean;
}

export interface RunSocketOptions {
  readonly folder: RunFolder;
  /** Bytes of whole lines in the record now. */
  readonly size: () => number;
  readonly onControl: (control: RunControl, by: string) => void;
}

interface View {
  readonly socket: Socket;
  hello?: Hello;
  /** Bytes of the record sent. */
  sent: number;
  pumping: boolean;
}

/** Characters of a line that a view may send. */
const MAX_LINE = 65_536;

/**
 * Serves a run's record to its views and takes their controls. Each view is served from the file at its own pace, so a
 * slow view costs no memory and holds nothing up.
 */
export class RunSocket {
  readonly #options: RunSocketOptions;
  readonly #views = new Set<View>();
  readonly #server: Server;
  readonly #record: FileHandle;
  /** Bytes that were written and not yet pushed, without gaps. */
  #unpushed: { readonly from: number; readonly parts: Uint8Array[] } | undefined;
  #pushTimer: NodeJS.Immediate | undefined;

  private constructor(options: RunSocketOptions, server: Server, record: FileHandle) {
    this.#options = options;
    this.#server = server;
    this.#record = record;
    server.on("connection", (socket) => this.#addView(socket));
  }

  /** Listens in the run's folder with mode 0600, and removes an old socket there, which a dead process left. */
  static async open(options: RunSocketOptions): Promise<RunSocket> {
    const { folder } = options;
    await unlink(join(folder.path, SOCKET_NAME)).catch(() => undefined);
    const record = await open(folder.events, "r");
    const server = createServer();
    const opened = new RunSocket(options, server, record);
    const umask = process.umask(0o177);
    try {
      inWorkingFolder(folder.path, () => server.listen(SOCKET_NAME));
    } finally {
      process.umask(umask);
    }
    await once(server, "listening");
    return opened;
  }

  /** Whether a view is connected whose operator can answer a question. */
  get hasAnswerer(): boolean {
    return this.#views.values().some(({ hello }) => hello?.answers);
  }

  /**
   * Passes on bytes that the record has from offset `at` on. A view that keeps up gets them from memory, together with the other bytes of
   * this turn of the event loop.
   */
  push(bytes: Uint8Array, at: number): void {
    if (this.#views.size === 0 && !this.#unpushed) return;
    this.#unpushed ??= { from: at, parts: [] };
    this.#unpushed.parts.push(bytes);
    this.#pushTimer ??= setImmediate(() => this.#pushNow());
  }

  #pushNow(): void {
    clearImmediate(this.#pushTimer);
    this.#pushTimer = undefined;
    if (!this.#unpushed) return;
    const { from: at, parts } = this.#unpushed;
    this.#unpushed = undefined;
    const bytes = parts.length === 1 ? (parts[0] as Uint8Array) : Buffer.concat(parts);
    for (const view of this.#views) {
      if (view.hello && !view.pumping && view.sent === at && !view.socket.writableNeedDrain) {
        view.sent += bytes.length;
        view.socket.write(bytes);
      } else void this.#pump(view);
    }
  }

  /** Waits until every view has the whole record, `patience` milliseconds at most, then closes. */
  async close(patience: number): Promise<void> {
    this.#server.close();
    this.#pushNow();
    const limit = AbortSignal.timeout(patience);
    for (const view of this.#views) {
      const isServed = (): boolean =>
        !this.#views.has(view) || limit.aborted || (view.hello !== undefined && view.sent >= this.#options.size());
      await poll(isServed, { everyMs: 5 });
      await this.#endView(view.socket, limit);
    }
    await this.#record.close();
    await unlink(join(this.#options.folder.path, SOCKET_NAME)).catch(() => undefined);
  }

  async #endView(socket: Socket, limit: AbortSignal): Promise<void> {
    if (socket.destroyed) return;
    const closed = once(socket, "close", { signal: limit }).catch(() => undefined);
    socket.end();
    await closed;
    socket.destroy();
  }

  #addView(socket: Socket): void {
    const view: View = { socket, sent: 0, pumping: false };
    this.#views.add(view);
    let text = "";
    socket.setEncoding("utf8");
    socket.on("data", (chunk: string) => {
      text += chunk;
      for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n")) {
        this.#handleLine(view, text.slice(0, end));
        text = text.slice(end + 1);
      }
      if (text.length > MAX_LINE) socket.destroy();
    });
    socket.on("error", () => socket.destroy());
    socket.on("close", () => this.#views.delete(view));
  }

  #handleLine(view: View, line: string): void {
    const message = parseMessage(line);
    if (message === undefined) {
      view.socket.destroy();
    } else if (message.type === "hello") {
      view.hello = message;
      view.sent = Math.min(message.from, this.#options.size());
      void this.#pump(view);
    } else if (view.hello) this.#options.onControl(message, view.hello.by);
  }

  async #pump(view: View): Promise<void> {
    if (view.pumping || !view.hello) return;
    view.pumping = true;
    try {
      if (view.socket.writableNeedDrain) await drained(view.socket);
      while (!view.socket.destroyed && view.sent < this.#options.size()) {
        const length = Math.min(65_536, this.#options.size() - view.sent);
        const { bytesRead, buffer } = await this.#record.read(Buffer.alloc(length), 0, length, view.sent);
        if (bytesRead === 0) return;
        view.sent += bytesRead;
        if (!view.socket.write(buffer.subarray(0, bytesRead))) await drained(view.socket);
      }
    } catch {
      view.socket.destroy();
    } finally {
      view.pumping = false;
    }
  }
}

async function drained(socket: Socket): Promise<void> {
  const stop = new AbortController();
  const close = () => stop.abort();
  socket.once("close", close);
  try {
    await once(socket, "drain", { signal: stop.signal });
  } finally {
    socket.off("close", close);
  }
}

/** A view's message; undefined for a line that is no message. */
export function parseMessage(line: string): Hello | RunControl | undefined {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return undefined;
  }
  if (typeof value !== "object" || value === null) return undefined;
  const { type, id, value: answer, from, by, answers } = value as Record<string, unknown>;
  if (type === "stop" || type === "abort") return { type };
  if (type === "answer" && typeof id === "string" && typeof answer === "string") return { type, id, value: answer };
  if (
    type === "hello" &&
    typeof from === "number" &&
    from >= 0 &&
    typeof by === "string" &&
    typeof answers === "boolean"
  )
    return { type, from, by, answers };
  return undefined;
}
