import { open, readFile, rm, writeFile } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { once } from "node:events";
import { join } from "node:path";
import { wait, within } from "#base/wait.ts";
import type { RunControl, RunEvent } from "#engine/events/event.ts";
import { parseEvent } from "#engine/events/recording.ts";
import { exitCodes, KcoreError, type Problem } from "#errors/problem.ts";
import type { LaunchedRun } from "./launch-run.ts";
import { inWorkingFolder } from "./working-folder.ts";
import { isAlive } from "./process-mark.ts";
import { RESERVE_BYTES } from "./record-writer.ts";
import { roomHint, recordUnwritable } from "./unwritable.ts";
import { readHeader, type RunFolder } from "./run-folder.ts";
import { SOCKET_NAME, type Hello } from "./run-socket.ts";

export interface RunClientOptions {
  readonly folder: RunFolder;
  /** The view's operator, for the record: `user@host`. */
  readonly by: string;
  /** Whether this view can answer questions. */
  readonly answers: boolean;
  /** The run's process, if this command has just started it. Absent: another command started the run. */
  readonly launched?: LaunchedRun;
  /** Whether to read the recorded events alone, and not to wait for more. */
  readonly replayOnly?: boolean;
  /** Bytes at the start of the record that are known already, up to the end of a line. */
  readonly from?: number;
}

/** Milliseconds, on a busy machine, from the creation of a run's folder until the run's header names its process. */
const maxStart = 15_000;

/** The client of a run for a view: reads the run's events, from the first or from `from` on, and sends controls. */
export class RunClient {
  readonly #options: RunClientOptions;
  #socket: Socket | undefined;
  #offset: number;
  #last: RunEvent | undefined;
  #hasLeft = false;
  readonly #unsent: RunControl[] = [];

  constructor(options: RunClientOptions) {
    this.#options = options;
    this.#offset = options.from ?? 0;
  }

  /** Sends a control to the run, at once or with the next connection. */
  send(control: RunControl): void {
    if (this.#socket?.writable) this.#socket.write(`${JSON.stringify(control)}\n`);
    else this.#unsent.push(control);
  }

  /** Stops following; the run goes on. */
  leave(): void {
    this.#hasLeft = true;
    this.#socket?.destroy();
  }

  /**
   * Every event of the run, old ones first, until the run's end or `leave`.
   * @throws KcoreError RUN_DIED when the run's process ended without finishing the run, RUN_RECORD_UNWRITABLE when a full disk was the probable
   * reason; errors of the run's header
   */
  async *events(): AsyncGenerator<RunEvent, void, void> {
    await this.#awaitReady();
    while (!this.#hasLeft) {
      const socket = this.#options.replayOnly ? undefined : await this.#connect();
      if (socket) {
        yield* this.#read(socket);
        if (this.#hasLeft || this.#last?.type === "run.finished") return;
      }
      // The record has the events that the socket did not bring because the process ended.
      yield* this.#readRecord();
      if (this.#options.replayOnly || this.#hasLeft) return;
      // A `run.finished` in the record can belong to the part before a resumption that has just begun, so the process is looked at first.
      if (!(await this.#mayComeBack())) {
        yield* this.#readRecord();
        if ((this.#last as RunEvent | undefined)?.type === "run.finished") return;
        throw await this.#died();
      }
      await wait(10);
    }
  }

  /** Waits for the run's socket if the started process reports it, at most 200 ms, since the operator may leave. */
  async #awaitReady(): Promise<void> {
    const ready = this.#options.launched?.ready;
    if (ready) await within(200, ready);
  }

  async #connect(): Promise<Socket | undefined> {
    try {
      const socket = inWorkingFolder(this.#options.folder.path, () => connect(SOCKET_NAME));
      await once(socket, "connect");
      const { by, answers } = this.#options;
      const hello: Hello = { type: "hello", from: this.#offset, by, answers };
      socket.write(`${JSON.stringify(hello)}\n`);
      this.#socket = socket;
      for (const control of this.#unsent.splice(0)) this.send(control);
      return socket;
    } catch {
      return undefined;
    }
  }

  async *#read(socket: Socket): AsyncGenerator<RunEvent, void, void> {
    try {
      yield* this.#parse(socket);
    } catch (error) {
      // A broken connection is no error: the record has the remaining events.
      if (!socket.destroyed) throw error;
    } finally {
      this.#socket = undefined;
      socket.destroy();
    }
  }

  async *#readRecord(): AsyncGenerator<RunEvent, void, void> {
    const file = await open(this.#options.folder.events, "r").catch(() => undefined);
    if (!file) return;
    try {
      yield* this.#parse(file.createReadStream({ start: this.#offset, autoClose: false }));
    } finally {
      await file.close();
    }
  }

  async *#parse(chunks: AsyncIterable<Buffer>): AsyncGenerator<RunEvent, void, void> {
    let rest: Buffer = Buffer.alloc(0);
    for await (const chunk of chunks) {
      rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      let start = 0;
      for (let end = rest.indexOf(10, start); end >= 0; end = rest.indexOf(10, start)) {
        const event = parseEvent(rest.toString("utf8", start, end));
        this.#offset += end + 1 - start;
        start = end + 1;
        if (!event) continue;
        this.#last = event;
        yield event;
      }
      rest = rest.subarray(start);
    }
  }

  async #mayComeBack(): Promise<boolean> {
    const { folder, launched } = this.#options;
    if (launched) return !launched.hasExited();
    const { process, created } = await readHeader(folder);
    // The process writes its mark when it has begun: a view that attaches at once may come before that.
    return process === undefined ? Date.now() - created < maxStart : isAlive(process);
  }

  /** The problem of a full disk, as the probable reason why the run's process ended: the process could not record its own end. */
  async #full(): Promise<Problem | undefined> {
    const { path } = this.#options.folder;
    const probe = join(path, `.room.${process.pid}`);
    try {
      await writeFile(probe, Buffer.alloc(RESERVE_BYTES), { mode: 0o600 });
      return undefined;
    } catch (error) {
      return recordUnwritable(path, error);
    } finally {
      await rm(probe, { force: true });
    }
  }

  async #died(): Promise<KcoreError> {
    const { folder } = this.#options;
    const full = await this.#full();
    if (full) return new KcoreError({ ...full, hint: roomHint(folder) }, { exitCode: exitCodes.failed });
    const log = (await readFile(folder.processLog, "utf8").catch(() => "")).trim().split("\n").slice(-20).join("\n");
    return new KcoreError(
      {
        code: "RUN_DIED",
        message: `the process of run ${folder.id} ended before the run did`,
        hint: `kcore runs resume ${folder.id}`,
        ...(log === "" ? {} : { detail: log }),
      },
      { exitCode: exitCodes.failed },
    );
  }
}
