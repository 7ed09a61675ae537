import { padColumns } from "#base/text.ts";
import type { Timers } from "#base/timers.ts";
import { cleanText } from "#engine/events/clean.ts";

/** An entry of a node's journal, as `-o json` prints it. */
export interface LogEntry {
  /** ISO 8601. */
  readonly time: string;
  readonly node: string;
  /** The unit, without `.service`; else the program's name for itself, such as `kernel`. */
  readonly unit: string;
  readonly priority: string;
  readonly pid: string;
  readonly message: string;
}

/** The entry in a line of `journalctl -o json`; undefined for another line. */
export function parseEntry(node: string, line: string): LogEntry | undefined {
  try {
    const fields = JSON.parse(line) as Readonly<Record<string, unknown>>;
    // The time at which the entry was made; the journal got it later.
    const microseconds = textOf(fields["_SOURCE_REALTIME_TIMESTAMP"]) || textOf(fields["__REALTIME_TIMESTAMP"]);
    return {
      time: new Date(Number(microseconds || Number.NaN) / 1000)
        .toISOString()
        .replace("Z", `${microseconds.slice(-3)}Z`),
      node,
      unit: (textOf(fields["_SYSTEMD_UNIT"]) || textOf(fields["SYSLOG_IDENTIFIER"]) || "-").replace(/\.service$/, ""),
      priority: textOf(fields["PRIORITY"]),
      pid: textOf(fields["_PID"]),
      message: textOf(fields["MESSAGE"]),
    };
  } catch {
    return undefined;
  }
}

/** A field's text. Bytes that are no UTF-8 come as numbers, several values as a list. */
function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  if (!Array.isArray(value)) return "";
  return typeof value[0] === "number" ? Buffer.from(value).toString("utf8") : value.map(textOf).join("\n");
}

/** The colours of nodes, in turn. */
const colours = [36, 33, 32, 35, 34, 96, 93, 92, 95, 94];

/** Returns a function that draws an entry as lines `TIME NODE UNIT: TEXT`; each line of a message has all of it. */
export function lineDrawer(nodes: readonly string[], isColoured: boolean): (entry: LogEntry) => string {
  const width = Math.max(...nodes.map((node) => node.length));
  return ({ time, node, unit, message }) => {
    const name = padColumns(node, width);
    const colour = colours[nodes.indexOf(node) % colours.length];
    const shown = isColoured ? `\u001b[${colour}m${name}\u001b[0m` : name;
    const lines = cleanText(message).replace(/\n+$/, "").split("\n");
    return lines.map((line) => `${time.slice(0, 23)}Z ${shown} ${cleanText(unit)}: ${line}\n`).join("");
  };
}

/** The entries of all sources by their time. Holds one entry of each source, so each is read only as fast as the result. */
export async function* mergeByTime(sources: readonly AsyncIterator<LogEntry>[]): AsyncGenerator<LogEntry> {
  const heads = new Map<AsyncIterator<LogEntry>, LogEntry>();
  const advance = async (source: AsyncIterator<LogEntry>): Promise<void> => {
    const head = await source.next();
    if (head.done) heads.delete(source);
    else heads.set(source, head.value);
  };
  await Promise.all(sources.map(advance));
  while (heads.size > 0) {
    const [source, entry] = [...heads].reduce((one, other) => (other[1].time < one[1].time ? other : one));
    yield entry;
    await advance(source);
  }
}

/** Milliseconds in which the entries of several nodes are put in order. */
const reorderMs = 500;

/** Returns a function that takes the entries of living logs, and prints those of each half a second by their time. */
export function inOrder(print: (entry: LogEntry) => void, { after }: Timers): (entry: LogEntry) => void {
  let waiting: LogEntry[] = [];
  return (entry) => {
    if (waiting.push(entry) > 1) return;
    after(reorderMs, () => {
      const due = waiting.toSorted((a, b) => (a.time < b.time ? -1 : a.time > b.time ? 1 : 0));
      waiting = [];
      due.forEach(print);
    });
  };
}
