import { join, relative } from "node:path";
import { logName } from "#engine/run/run-folder.ts";
import type { RunDigest } from "#tui/digest.ts";
import { defined } from "#optional/defined.ts";
import { watchRun } from "../watch/watch-run.ts";
import type { CommonFlags } from "../options.ts";
import { findProject } from "../project/find-project.ts";
import { sourceLines, wantsColor } from "../terminal/report-failure.ts";
import { readRun, stateOf, type KnownRun } from "./known-run.ts";
import { printJson } from "../terminal/print-json.ts";

export interface ShowFlags extends CommonFlags {
  readonly output: "text" | "json";
  readonly events?: boolean;
  readonly html?: string;
}

/** `kcore runs show`: a run on one screen; with `--events` everything that happened. */
export async function showRun(id: string, { project, output, events = false, html }: ShowFlags): Promise<void> {
  const root = findProject(project);
  const run = await readRun(root, id);
  if (html !== undefined) {
    const { writeReports } = await import("./write-reports.ts");
    return writeReports([html], run.folder);
  }
  if (events) {
    await watchRun({ folder: run.folder, output: output === "json" ? "json" : "plain", replayOnly: true });
    return;
  }
  const digest = await digestOf(run);
  if (output === "json") {
    process.stdout.write(`${printJson(digest, 2)}\n`);
    return;
  }
  const { drawDigest } = await import("#tui/draw-digest.ts");
  const options = {
    color: wantsColor(process.stdout),
    sourceLine: sourceLines(root),
    columns: process.stdout.columns || 80,
    cut: process.stdout.isTTY,
  };
  process.stdout.write(`${drawDigest(digest, options)}\n`);
}

/** A recorded run in short. */
export async function digestOf(run: KnownRun): Promise<RunDigest> {
  const { digestRun } = await import("#tui/digest.ts");
  const { folder, header, model } = run;
  const { revision, dirty, who, created, request } = header;
  return digestRun(model, {
    id: folder.id,
    state: stateOf(run),
    who,
    created,
    command: request.command,
    logOf: (node) => relative(process.cwd(), join(folder.path, logName(node))),
    ...defined({ revision, dirty }),
  });
}
