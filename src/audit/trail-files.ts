import { constants } from "node:fs";
import { open, readdir } from "node:fs/promises";
import { basename, join } from "node:path";
import { ifThere } from "#base/file.ts";
import type { PlacedLine } from "./chain.ts";

const namePattern = /^(\d{12})\.ndjson$/;

/** A file of a trail; its name tells the number of its first entry. */
export interface Segment {
  readonly path: string;
  readonly first: number;
}

export interface NumberedLine extends PlacedLine {
  /** The number of its entry, by its place. */
  readonly n: number;
}

export function segmentName(first: number): string {
  return `${String(first).padStart(12, "0")}.ndjson`;
}

/** The files of a trail in order; none when there is no trail yet. */
export function segmentsAmong(folder: string, names: readonly string[]): readonly Segment[] {
  return names
    .flatMap((name) => {
      const first = namePattern.exec(name)?.[1];
      return first === undefined ? [] : [{ path: join(folder, name), first: Number(first) }];
    })
    .toSorted((a, b) => a.first - b.first);
}

/**
 * The lines of a trail in order from entry `from` on, file after file; a last line without its end is one that is just being written, or
 * that a crash tore, and none yet.
 * @throws NodeJS.ErrnoException when a file cannot be read, or is a link
 */
export async function* readTrail(folder: string, from = 1): AsyncGenerator<NumberedLine> {
  const names = (await ifThere(readdir(folder))) ?? [];
  const segments = segmentsAmong(folder, names);
  const begin = Math.max(
    0,
    segments.findLastIndex(({ first }) => first <= from),
  );
  for (const { path: file, first } of segments.slice(begin)) {
    const lines = (await readText(file)).split("\n");
    lines.pop();
    for (const [index, text] of lines.entries())
      if (first + index >= from) yield { file, line: index + 1, n: first + index, text };
  }
}

async function readText(file: string): Promise<string> {
  let handle;
  try {
    handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW);
    return await handle.readFile("utf8");
  } catch (error) {
    // The oldest file may go while it is read; a reader of the chain sees that a file is missing.
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return "";
    throw error;
  } finally {
    await handle?.close();
  }
}

/** Some lines of a trail; `file` is a name without its folder. */
export interface TrailPage {
  readonly lines: readonly PlacedLine[];
  /** Number to go on with; absent when these were the last. */
  readonly next?: number;
}

/** A page has more than so many bytes, unless it is the last one. */
export const pageBytes = 256 * 1024;

/** The lines from entry `from` on, as many as fit into a page. */
export async function readPage(folder: string, from: number): Promise<TrailPage> {
  const lines: PlacedLine[] = [];
  let bytes = 0;
  for await (const { file, line, n, text } of readTrail(folder, from)) {
    if (bytes > pageBytes) return { lines, next: n };
    lines.push({ file: basename(file), line, text });
    bytes += text.length;
  }
  return { lines };
}
