import { open, type FileHandle } from "node:fs/promises";
import type { RunEvent } from "#engine/events/event.ts";
import { parseEvent } from "#engine/events/recording.ts";
import { isAlive } from "#engine/run/process-mark.ts";
import { readHeader, type RunFolder, type RunHeader } from "#engine/run/run-folder.ts";

/** Bytes read from either end of a record: a list of runs must not take longer the more happened in them. */
const WINDOW = 262_144;

/** What a list says about a run. */
export interface RunGlance {
  readonly folder: RunFolder;
  readonly header: RunHeader;
  readonly state: string;
  readonly milliseconds: number;
  readonly nodes: readonly string[];
  readonly exitCode?: number;
}

/** Looks at the first and the last events of a run. @throws KcoreError RUN_UNKNOWN, RUN_RECORD_CORRUPT */
export async function glanceAtRun(folder: RunFolder): Promise<RunGlance> {
  const header = await readHeader(folder);
  const alive = isAlive(header.process);
  const { first, last, stopping } = await readEnds(folder);
  const milliseconds = timeOf(header, first, last);
  const common = { folder, header, milliseconds, nodes: first?.nodes ?? [] };
  if (last?.type === "run.finished") {
    const { exitCode, outcome } = last;
    return { ...common, state: first ? outcome : "refused", exitCode };
  }
  const going = first ? (stopping ? "stopping" : "running") : "starting";
  return { ...common, state: alive ? going : "died" };
}

/** As `runTime` has it, which knows every event. */
function timeOf({ part }: RunHeader, first: Started | undefined, last: RunEvent | undefined): number {
  if (!first || !last) return 0;
  const { at, ranBefore } = part ?? { at: first.at, ranBefore: 0 };
  return ranBefore + Math.max(0, last.at - at);
}

type Started = Extract<RunEvent, { type: "run.started" }>;

interface Ends {
  readonly first?: Started;
  readonly last?: RunEvent;
  readonly stopping?: boolean;
}

async function readEnds(folder: RunFolder): Promise<Ends> {
  const record = await open(folder.events, "r").catch(() => undefined);
  if (!record) return {};
  try {
    const { size } = await record.stat();
    const head = eventsIn(await readHead(record, size));
    const start = Math.max(0, size - WINDOW);
    const tail = start === 0 ? head : eventsIn(await readAt(record, start, size - start));
    const first = head.find((event): event is Started => event.type === "run.started");
    const last = tail.at(-1);
    const stopping = tail.some(({ type }) => type === "run.stopping");
    return { stopping, ...(first && { first }), ...(last && { last }) };
  } finally {
    await record.close();
  }
}

/** The start of a record, at least its first line: that of a large fleet names each node in each stage. */
async function readHead(record: FileHandle, size: number): Promise<string> {
  for (let length = WINDOW; ; length *= 2) {
    const text = await readAt(record, 0, Math.min(size, length));
    if (length >= size || text.includes("\n")) return text;
  }
}

async function readAt(record: FileHandle, position: number, length: number): Promise<string> {
  const buffer = Buffer.alloc(length);
  const { bytesRead } = await record.read(buffer, 0, length, position);
  return buffer.toString("utf8", 0, bytesRead);
}

/** The whole events of a piece of a record; torn lines are none, nor is a last one without its end. */
function eventsIn(text: string): readonly RunEvent[] {
  return text
    .slice(0, text.lastIndexOf("\n") + 1)
    .split("\n")
    .flatMap((line) => parseEvent(line) ?? []);
}
