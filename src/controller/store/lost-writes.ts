import { MalformedPage, PageReader } from "#crdt/page.ts";
import { controllerOf } from "../replica/registered-controllers.ts";

/** A lost write, as far as its damaged bytes can be read. */
export interface LostWrite {
  readonly key: string;
  /** The time of the write by its writer's clock (ISO 8601); absent if unreadable. */
  readonly at?: string;
  /** The controller that wrote it; absent if unreadable. */
  readonly writer?: string;
  readonly deleted: boolean;
}

/** A register's row in a page (`WireRegister`), whose numbers may be missing. */
const row = /\["((?:[^"\\]|\\.)+)",(null|"(?:[^"\\]|\\.)*"?)(?:,(\d+),\d+,(\d+),)?/g;
const originsOf = /"origins":(\[[^\]]*\])/;

/**
 * Finds writes in damaged lines of a journal or a snapshot. They are shown to the operator and never merged: without a valid checksum
 * none of them is certain.
 */
export function* writesIn(text: string): Generator<LostWrite> {
  for (const line of text.split("\n")) yield* wholeWrites(line) ?? readableWrites(line);
}

/** The writes of a line that is still valid JSON with pages; undefined for other lines. */
function wholeWrites(line: string): readonly LostWrite[] | undefined {
  try {
    const value = JSON.parse(line) as unknown;
    const records = (Array.isArray(value) ? value : [value]) as readonly ({ readonly page?: unknown } | null)[];
    const pages = records.flatMap((record) => (record?.page === undefined ? [] : [record.page]));
    const reader = new PageReader();
    return pages.flatMap((page) =>
      reader.read(page).map(({ key, text, ms, o }) => {
        const at = timeOf(ms);
        return { key, ...(at !== undefined && { at }), writer: controllerOf(o), deleted: text === null };
      }),
    );
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof MalformedPage) return undefined;
    throw error;
  }
}

/** The writes of a line that is no valid JSON: everything that looks like a row. */
function* readableWrites(line: string): Generator<LostWrite> {
  const origins = listIn(originsOf.exec(line)?.[1]);
  for (const [, quoted = "", value, ms, origin] of line.matchAll(row)) {
    const key = listIn(`["${quoted}"]`)[0] ?? quoted;
    // The page's list of origins looks like a row, too.
    if (origins.includes(key)) continue;
    const at = ms === undefined ? undefined : timeOf(Number(ms));
    const writer = origin === undefined ? undefined : origins[Number(origin)];
    yield {
      key,
      ...(at !== undefined && { at }),
      ...(writer !== undefined && { writer: controllerOf(writer) }),
      deleted: value === "null",
    };
  }
}

function listIn(text = "[]"): readonly string[] {
  try {
    return (JSON.parse(text) as readonly unknown[]).filter((item) => typeof item === "string");
  } catch {
    return [];
  }
}

function timeOf(ms: number): string | undefined {
  return ms > 0 && ms < 8.64e15 ? new Date(ms).toISOString() : undefined;
}
