import { constants } from "node:fs";
import { open, readdir } from "node:fs/promises";
import { basename, join } from "node:path";
import { ifThere } from "#base/file.ts";
import type { PlacedLine } from "./chain.ts";

const namePattern = /^(\d{12})\.ndjson$/;

/** A file of a trail; its name is the number of its first entry. */
export interface TrailFile {
  readonly path: string;
  readonly first: number;
}

export interface NumberedLine extends PlacedLine {
  /** The entry's number as its file and line imply it; a damaged entry may name another one. */
  readonly n: number;
}

export function trailFileName(first: number): string {
  return `${String(first).padStart(12, "0")}.ndjson`;
}

/** The files of a trail among the names in its folder, in order. */
export function trailFilesAmong(folder: string, names: readonly string[]): readonly TrailFile[] {
  return names
    .flatMap((name) => {
      const first = namePattern.exec(name)?.[1];
      return first === undefined ? [] : [{ path: join(folder, name), first: Number(first) }];
    })
    .toSorted((a, b) => a.first - b.first);
}

/**
 * The lines of a trail in order, from entry `from` on. A last line without a line feed is left out: it is being written, or a crash
 * tore it.
 * @throws NodeJS.ErrnoException when a file cannot be read, or is a link
 */
export async function* readTrail(folder: string, from = 1): AsyncGenerator<NumberedLine> {
  const names = (await ifThere(readdir(folder))) ?? [];
  const segments = trailFilesAmong(folder, names);
  const begin = Math.max(
    0,
    segments.findLastIndex(({ first }) => first <= from),
  );
  for (const { path: file, first } of segments.slice(begin)) {
    const lines = (await readTrailFile(file)).split("\n");
    lines.pop();
    for (const [index, text] of lines.entries())
      if (first + index >= from) yield { file, line: index + 1, n: first + index, text };
  }
}

/** The text of a trail's file, never through a link; empty if the file is missing. */
async function readTrailFile(file: string): Promise<string> {
  let handle;
  try {
    handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW);
    return await handle.readFile("utf8");
  } catch (error) {
    // The writer may have dropped this oldest file since the listing; the verifier reports the gap if the file should be there.
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return "";
    throw error;
  } finally {
    await handle?.close();
  }
}

/** Adjacent lines of a trail; their `file` is a name without its folder. */
export interface TrailPage {
  readonly lines: readonly PlacedLine[];
  /** The entry that the next page begins with; absent on the last page. */
  readonly next?: number;
}

/** A page ends with the line that takes it above this many characters. */
export const pageBytes = 256 * 1024;

/** One page of lines, from entry `from` on. */
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
