import { open, type FileHandle } from "node:fs/promises";

/** Reads a run's record by places, opened when it is first wanted. */
export class RecordReader {
  readonly #path: string;
  #file: Promise<FileHandle> | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  async read(at: number, length: number): Promise<Uint8Array> {
    const file = await (this.#file ??= open(this.#path, "r"));
    const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(length), 0, length, at);
    return buffer.subarray(0, bytesRead);
  }

  async close(): Promise<void> {
    const file = await this.#file?.catch(() => undefined);
    await file?.close();
  }
}
