import { EventEmitter } from "node:events";
import { PassThrough } from "node:stream";

/** A terminal of a given size that keeps its output. */
export class FakeTerminal extends EventEmitter {
  readonly isTTY = true;
  readonly writable = true;
  columns: number;
  rows: number;
  written = "";
  readonly stdin: NodeJS.ReadStream;
  /** Raw mode: keys come one by one. */
  isRaw = false;

  constructor(columns = 80, rows = 24) {
    super();
    this.columns = columns;
    this.rows = rows;
    const stdin = new PassThrough();
    const setRawMode = (mode: boolean) => {
      this.isRaw = mode;
      return stdin;
    };
    this.stdin = Object.assign(stdin, {
      isTTY: true,
      setRawMode,
      ref: () => stdin,
      unref: () => stdin,
    }) as unknown as NodeJS.ReadStream;
  }

  get stdout(): NodeJS.WriteStream {
    return this as unknown as NodeJS.WriteStream;
  }

  write(text: string | Uint8Array, ...more: readonly unknown[]): boolean {
    this.written += String(text);
    const done = more.find((one) => typeof one === "function") as (() => void) | undefined;
    if (done) queueMicrotask(done);
    return true;
  }

  type(keys: string): void {
    (this.stdin as unknown as PassThrough).write(keys);
  }

  resize(columns: number, rows: number): void {
    this.columns = columns;
    this.rows = rows;
    this.emit("resize");
  }
}
