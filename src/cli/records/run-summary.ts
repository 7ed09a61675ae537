import { open, type FileHandle } from "node:fs/promises";
import type { Question, RunEvent } from "#engine/events/event.ts";
import { parseEvent } from "#engine/events/recording.ts";
import { isAlive } from "#engine/run/process-mark.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { readHeader, type RunFolder, type RunHeader, listRunIds, runFolder } from "#engine/run/run-folder.ts";

/** The bytes to read at either end of a record, so that a list of runs does not take longer for longer runs. */
const endBytes = 262_144;

/** A run as a list shows it. */
export interface RunSummary {
  readonly folder: RunFolder;
  readonly header: RunHeader;
  readonly state: string;
  /** Whether the run has finished, or its process has died. */
  readonly isOver: boolean;
  /** The run's start, in milliseconds since the epoch. */
  readonly started: number;
  readonly milliseconds: number;
  /** The time from which the duration of a living run counts, in milliseconds since the epoch. */
  readonly since: number;
  /** The question that the run waits for. */
  readonly question?: Question;
  readonly nodes: readonly string[];
  readonly exitCode?: number;
}

/** Summarizes a run by its first and last events. @throws KcoreError RUN_UNKNOWN, RUN_RECORD_CORRUPT */
export async function summarizeRun(folder: RunFolder): Promise<RunSummary> {
  const header = await readHeader(folder);
  const alive = isAlive(header.process);
  const { first, last, stopping, question } = await readEnds(folder);
  const isOver = last?.type === "run.finished" || !alive;
  const time = durationOf(header, first, isOver ? last?.at : Date.now());
  const common = { folder, header, isOver, started: first?.at ?? header.created, ...time, nodes: first?.nodes ?? [] };
  if (last?.type === "run.finished") {
    const { exitCode, outcome } = last;
    return { ...common, state: first ? outcome : "refused", exitCode };
  }
  if (!alive) return { ...common, state: "died" };
  if (first && !stopping && question) return { ...common, state: "waiting", question };
  return { ...common, state: first ? (stopping ? "stopping" : "running") : "starting" };
}

/** The duration as `runTime` computes it from every event. */
function durationOf(
  { part, created }: RunHeader,
  first: RunStarted | undefined,
  end: number | undefined,
): Pick<RunSummary, "since" | "milliseconds"> {
  if (!first || end === undefined) return { since: created, milliseconds: 0 };
  const { at, ranBefore } = part ?? { at: first.at, ranBefore: 0 };
  return { since: at - ranBefore, milliseconds: ranBefore + Math.max(0, end - at) };
}

type RunStarted = Extract<RunEvent, { type: "run.started" }>;

interface RecordEnds {
  readonly first?: RunStarted;
  readonly last?: RunEvent;
  readonly stopping?: boolean;
  readonly question?: Question;
}

async function readEnds(folder: RunFolder): Promise<RecordEnds> {
  const record = await open(folder.events, "r").catch(() => undefined);
  if (!record) return {};
  try {
    const { size } = await record.stat();
    const head = eventsIn(await readHead(record, size));
    const start = Math.max(0, size - endBytes);
    const end = start === 0 ? head : eventsIn(await readAt(record, start, size - start));
    // After a resume, open questions and a stop of an earlier part do not count.
    const tail = end.slice(end.findLastIndex(({ type }) => type === "run.started") + 1);
    const first = head.find((event): event is RunStarted => event.type === "run.started");
    const last = end.at(-1);
    const stopping = tail.some(({ type }) => type === "run.stopping");
    const answered = new Set(tail.flatMap((event) => (event.type === "question.answered" ? [event.id] : [])));
    const question = tail.flatMap((event) => (event.type === "question.asked" ? [event.question] : []));
    return { stopping, ...omitUndefined({ first, last, question: question.find(({ id }) => !answered.has(id)) }) };
  } finally {
    await record.close();
  }
}

/** Reads the start of a record, at least its first line, which is long, as it names each node in each stage. */
async function readHead(record: FileHandle, size: number): Promise<string> {
  for (let length = endBytes; ; length *= 2) {
    const text = await readAt(record, 0, Math.min(size, length));
    if (length >= size || text.includes("\n")) return text;
  }
}

async function readAt(record: FileHandle, position: number, length: number): Promise<string> {
  const buffer = Buffer.alloc(length);
  const { bytesRead } = await record.read(buffer, 0, length, position);
  return buffer.toString("utf8", 0, bytesRead);
}

/** The events in a piece of a record; a line cut at either end is skipped. */
function eventsIn(text: string): readonly RunEvent[] {
  return text
    .slice(0, text.lastIndexOf("\n") + 1)
    .split("\n")
    .flatMap((line) => parseEvent(line) ?? []);
}

/** The values of `--state`. */
export const runStates: readonly string[] = [
  "starting",
  "running",
  "waiting",
  "stopping",
  "done",
  "failed",
  "unreachable",
  "interrupted",
  "refused",
  "died",
];

/** The runs that the filter selects, the newest last; unreadable records are skipped. */
export async function findRuns(project: string, filter: RunFilter): Promise<readonly RunSummary[]> {
  const found: RunSummary[] = [];
  // From the newest on: `limit` ends the search.
  for (const id of (await listRunIds(project)).reverse()) {
    if (found.length >= filter.limit) break;
    const summary = await summarizeRun(runFolder(project, id)).catch(() => undefined);
    if (summary && matches(summary, filter)) found.push(summary);
  }
  return found.reverse();
}

function matches({ state: is, nodes, header }: RunSummary, { state, failed, node, since }: RunFilter): boolean {
  return (
    (!state || state.includes(is)) &&
    (!failed || failedStates.includes(is)) &&
    (!node || node.some((name) => nodes.includes(name))) &&
    header.created >= (since ?? 0)
  );
}

/** The conditions of a list of runs, all of which count. */
export interface RunFilter {
  /** At most so many, the newest. */
  readonly limit: number;
  readonly state?: readonly string[];
  readonly failed?: boolean;
  readonly node?: readonly string[];
  /** The earliest start, in milliseconds since the epoch. */
  readonly since?: number;
}

/** The states of `--failed`: the run began and did not succeed, and no operator stopped it. */
export const failedStates: readonly string[] = ["failed", "unreachable", "died"];
