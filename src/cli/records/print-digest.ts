import { existsSync } from "node:fs";
import { join, relative } from "node:path";
import type { RunRequest } from "#engine/orchestrate/run-types.ts";
import { logName } from "#engine/run/run-folder.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import type { RunDigest } from "#tui/digest.ts";
import { sourceLines, wantsColor } from "../terminal/report-failure.ts";
import { runState, type KnownRun } from "./known-run.ts";

/** A run's digest, with the parts of the request that shape its work but may not show in its steps. */
export interface RecordedDigest extends RunDigest {
  readonly asked: Pick<RunRequest, "params" | "skipHealth" | "context">;
}

/** Makes the digest of a recorded run. */
export async function digestRecord(run: Omit<KnownRun, "events">): Promise<RecordedDigest> {
  const { digestRun } = await import("#tui/digest.ts");
  const { folder, header, model } = run;
  const { revision, dirty, who, created, request } = header;
  const { params, skipHealth, context } = request;
  // The duration of a living run counts until now.
  const isGoing = run.alive && model.state !== "finished";
  const digest = digestRun(isGoing ? { ...model, lastAt: Date.now() } : model, {
    id: folder.id,
    state: runState(run),
    who,
    created,
    command: request.command,
    logOf: (node) => {
      const path = join(folder.path, logName(node));
      return existsSync(path) ? relative(process.cwd(), path) : undefined;
    },
    ...omitUndefined({ revision, dirty }),
  });
  return { ...digest, asked: { params, skipHealth, ...omitUndefined({ context }) } };
}

/** The digest of a run as text for stdout, in colour on a terminal. */
export async function drawForOutput(digest: RunDigest, project: string, { isEnd = false } = {}): Promise<string> {
  const { drawDigest } = await import("#tui/draw-digest.ts");
  const text = drawDigest(digest, {
    color: wantsColor(process.stdout),
    sourceLine: sourceLines(project),
    columns: process.stdout.columns || 80,
    fitsScreen: process.stdout.isTTY,
    isEnd,
  });
  return `${text}\n`;
}
