import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { cleanText } from "#engine/events/clean.ts";
import { lastLines } from "#engine/events/whole-lines.ts";

/** Bytes that are read from the end of a log. */
const readBytes = 8 << 10;
/** Characters that are returned: a screen. */
const maxCharacters = 1_500;

/** The last lines of a log of a node's console, without control sequences; undefined if there are none, or the log cannot be read. */
export function consoleEnd(file: string): string | undefined {
  let open: number | undefined;
  try {
    // Without O_NONBLOCK, opening a FIFO would wait for its writer.
    open = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
    const { size } = fstatSync(open);
    const bytes = Buffer.alloc(Math.min(size, readBytes));
    const read = readSync(open, bytes, 0, bytes.length, size - bytes.length);
    const lines = cleanText(bytes.toString("utf8", 0, read)).split("\n");
    const text = lines.map((line) => line.trimEnd()).filter((line) => line !== "");
    return lastLines(text.join("\n"), maxCharacters) || undefined;
  } catch {
    return undefined;
  } finally {
    if (open !== undefined) closeSync(open);
  }
}
