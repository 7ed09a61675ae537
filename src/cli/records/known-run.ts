import { createReadStream } from "node:fs";
import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import type { RunEvent } from "#engine/events/event.ts";
import type { RunModel } from "#engine/events/run-model.ts";
import { parseEvent, parseRecording } from "#engine/events/recording.ts";
import { reduceEvents } from "#engine/events/reduce.ts";
import { isAlive } from "#engine/run/process-mark.ts";
import { listRunIds, readHeader, runFolder, type RunFolder, type RunHeader } from "#engine/run/run-folder.ts";
import { KcoreError } from "#errors/problem.ts";

/** A recorded run with all its events. */
export interface KnownRun {
  readonly folder: RunFolder;
  readonly header: RunHeader;
  readonly events: readonly RunEvent[];
  readonly model: RunModel;
  /** Whether the run's process lives. */
  readonly alive: boolean;
}

/** A recorded run without its events: a follower reads them itself. */
export type FoundRun = Pick<KnownRun, "folder" | "header">;

/** Selects the runs that `last` may mean. */
type IsMeant = (header: RunHeader) => boolean;

/**
 * Finds a run by its id or the last four digits of the id; `last` is the newest run that `isMeant` accepts.
 * @throws KcoreError RUN_UNKNOWN, RUN_RECORD_CORRUPT
 */
export async function findRun(project: string, id: string, isMeant?: IsMeant): Promise<FoundRun> {
  const folder = runFolder(project, await resolveId(project, id, isMeant));
  return { folder, header: await readHeader(folder) };
}

/** Finds a run as {@link findRun} does, and reads its events. @throws KcoreError RUN_UNKNOWN, RUN_RECORD_CORRUPT */
export async function readRun(project: string, id: string, isMeant?: IsMeant): Promise<KnownRun> {
  const { folder, header } = await findRun(project, id, isMeant);
  const alive = isAlive(header.process);
  const bytes = await readFile(folder.events).catch(() => Buffer.alloc(0));
  const { events } = parseRecording(bytes, folder.events);
  return { folder, header, events, model: reduceEvents(events), alive };
}

/** The events of a record whose lines match, read line by line as a record may be large; none without a record. */
export async function* scanRecord({ events }: RunFolder, pattern: RegExp): AsyncGenerator<RunEvent, void, void> {
  const file = createReadStream(events);
  file.on("error", () => undefined);
  try {
    for await (const line of createInterface({ input: file })) {
      const event = pattern.test(line) ? parseEvent(line) : undefined;
      if (event) yield event;
    }
  } finally {
    file.destroy();
  }
}

/**
 * The state of a run: `starting`, `running`, `waiting` (for an answer), `stopping`, `done`, `failed`, `unreachable`,
 * `interrupted`, `refused` or `died`.
 */
export function runState({ model, alive }: Pick<KnownRun, "model" | "alive">): string {
  if (alive && model.state === "running" && model.questions.length > 0) return "waiting";
  if (alive && model.state !== "finished") return model.state;
  if (model.outcome === undefined) return "died";
  return model.runId === "" ? "refused" : model.outcome;
}

/** The whole id of the run; four digits that no run's id ends with stay as they are. @throws KcoreError RUN_UNKNOWN */
async function resolveId(project: string, id: string, isMeant?: IsMeant): Promise<string> {
  if (id !== "last" && !/^[0-9a-f]{4}$/.test(id)) return id;
  const ids = await listRunIds(project);
  if (id !== "last") {
    const [one, other] = ids.filter((whole) => whole.endsWith(id)).toReversed();
    if (other === undefined) return one ?? id;
    throw new KcoreError({
      code: "RUN_UNKNOWN",
      message: `the ids of several runs end with ${id}`,
      hint: `name the run whole: ${one} or ${other}`,
    });
  }
  for (const newest of ids.toReversed()) {
    const header = isMeant && (await readHeader(runFolder(project, newest)).catch(() => undefined));
    if (!isMeant || (header && isMeant(header))) return newest;
  }
  throw new KcoreError({
    code: "RUN_UNKNOWN",
    message:
      ids.length === 0
        ? "no run is recorded in this project yet"
        : "“last” can mean none of this project's recorded runs",
    hint: ids.length === 0 ? "kcore orchestrate NAME TARGET" : "kcore runs list",
  });
}
