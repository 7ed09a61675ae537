import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { cleanText } from "#engine/events/clean.ts";
import { lastLines } from "#engine/events/whole-lines.ts";

/** Bytes of a log that are looked at. */
const looked = 8 << 10;
/** Characters that are told: a screen. */
const told = 1_500;

/** The last lines of a file in which a node's console is kept, without what would drive a terminal; undefined where there are none to be had. */
export function consoleEnd(file: string): string | undefined {
  let open: number | undefined;
  try {
    // A FIFO would be waited for.
    open = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
    const { size } = fstatSync(open);
    const bytes = Buffer.alloc(Math.min(size, looked));
    const read = readSync(open, bytes, 0, bytes.length, size - bytes.length);
    const lines = cleanText(bytes.toString("utf8", 0, read)).split("\n");
    const text = lines.map((line) => line.trimEnd()).filter((line) => line !== "");
    return lastLines(text.join("\n"), told) || undefined;
  } catch {
    return undefined;
  } finally {
    if (open !== undefined) closeSync(open);
  }
}
