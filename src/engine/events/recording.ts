import { KcoreError } from "#errors/problem.ts";
import type { RunEvent } from "./event.ts";

/** The contents of a record: one event a line. */
export interface Recording {
  readonly events: readonly RunEvent[];
  /** Bytes up to and including the last whole line; a crash tore the rest. */
  readonly length: number;
}

/**
 * Reads the bytes of `events.ndjson`. A last line that is cut short, or is no event, is left out; any other line that is
 * no event is damage.
 * @throws KcoreError RUN_RECORD_CORRUPT
 */
export function parseRecording(bytes: Uint8Array, file = "events.ndjson"): Recording {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const end = buffer.lastIndexOf(10) + 1;
  const lines = buffer.subarray(0, end).toString("utf8").split("\n");
  lines.pop();
  const events: RunEvent[] = [];
  let length = 0;
  for (const [index, line] of lines.entries()) {
    const event = parseEvent(line);
    if (event === undefined) {
      // A crash of the machine may leave a last line of zeros; the lines before it are valid.
      if (index === lines.length - 1) break;
      throw new KcoreError({
        code: "RUN_RECORD_CORRUPT",
        message: `line ${index + 1} of the run's record is damaged`,
        at: { file, line: index + 1, column: 1 },
        hint: "look at it by hand; the lines before it are whole",
      });
    }
    events.push(event);
    length += Buffer.byteLength(line) + 1;
  }
  return { events, length };
}

/** One line as an event; undefined when it is none. */
export function parseEvent(line: string): RunEvent | undefined {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value !== "object" || value === null) return undefined;
    const { seq, at, type } = value as Partial<RunEvent>;
    return typeof seq === "number" && typeof at === "number" && typeof type === "string"
      ? (value as RunEvent)
      : undefined;
  } catch {
    return undefined;
  }
}

/** An event as its line of the record. */
export function formatEvent(event: RunEvent): string {
  return `${JSON.stringify(event)}\n`;
}
