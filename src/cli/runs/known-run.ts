import { readFile } from "node:fs/promises";
import type { RunEvent } from "#engine/events/event.ts";
import type { RunModel } from "#engine/events/run-model.ts";
import { parseRecording } from "#engine/events/recording.ts";
import { reduceEvents } from "#engine/events/reduce.ts";
import { isAlive } from "#engine/run/process-mark.ts";
import { listRunIds, readHeader, runFolder, type RunFolder, type RunHeader } from "#engine/run/run-folder.ts";
import { KcoreError } from "#errors/problem.ts";

/** A recorded run, read whole. */
export interface KnownRun {
  readonly folder: RunFolder;
  readonly header: RunHeader;
  readonly events: readonly RunEvent[];
  readonly model: RunModel;
  /** Its process lives. */
  readonly alive: boolean;
}

/** A recorded run without its events: whoever follows it reads them himself. */
export type FoundRun = Pick<KnownRun, "folder" | "header">;

/** Which runs `last` may mean. */
type IsMeant = (header: RunHeader) => boolean;

/** Finds a run by its id; `last` is the newest that is meant. @throws KcoreError RUN_UNKNOWN, RUN_RECORD_CORRUPT */
export async function findRun(project: string, id: string, isMeant?: IsMeant): Promise<FoundRun> {
  const folder = runFolder(project, await resolveId(project, id, isMeant));
  return { folder, header: await readHeader(folder) };
}

/** Reads a run by its id, as {@link findRun} does, with all that happened. */
export async function readRun(project: string, id: string, isMeant?: IsMeant): Promise<KnownRun> {
  const { folder, header } = await findRun(project, id, isMeant);
  const alive = isAlive(header.process);
  const bytes = await readFile(folder.events).catch(() => Buffer.alloc(0));
  const { events } = parseRecording(bytes, folder.events);
  return { folder, header, events, model: reduceEvents(events), alive };
}

/** `running`, `stopping`, `done`, `failed`, `unreachable`, `interrupted`, `refused` or `died`. */
export function stateOf({ model, alive }: Pick<KnownRun, "model" | "alive">): string {
  if (alive && model.state !== "finished") return model.state;
  if (model.outcome === undefined) return "died";
  return model.runId === "" ? "refused" : model.outcome;
}

async function resolveId(project: string, id: string, isMeant?: IsMeant): Promise<string> {
  if (id !== "last") return id;
  for (const newest of (await listRunIds(project)).reverse()) {
    const header = isMeant && (await readHeader(runFolder(project, newest)).catch(() => undefined));
    if (!isMeant || (header && isMeant(header))) return newest;
  }
  throw new KcoreError({
    code: "RUN_UNKNOWN",
    message: "no run is recorded in this project yet",
    hint: "kcore orchestrate NAME TARGET",
  });
}
