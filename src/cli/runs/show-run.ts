import { watchRun } from "../watch/watch-run.ts";
import type { CommonFlags } from "../options.ts";
import { findProject } from "../project/find-project.ts";
import { readRun } from "../records/known-run.ts";
import { digestRecord, drawForOutput } from "../records/print-digest.ts";
import { printResult } from "../terminal/format-result.ts";

export interface ShowRunFlags extends CommonFlags {
  readonly output: "text" | "json";
  readonly events?: boolean;
  readonly html?: string;
}

/** `kcore runs show`: prints a run's digest; with `--events` all events; with `--html` writes its report instead. */
export async function showRun(id: string, { project, output, events = false, html }: ShowRunFlags): Promise<void> {
  const root = findProject(project);
  const run = await readRun(root, id);
  if (html !== undefined) {
    const { writeReports } = await import("../records/export.ts");
    return writeReports([html], run.folder);
  }
  if (events) {
    await watchRun({ folder: run.folder, output: output === "json" ? "json" : "plain", replayOnly: true });
    return;
  }
  const digest = await digestRecord(run);
  if (output === "json") {
    printResult(digest, "json");
    return;
  }
  process.stdout.write(await drawForOutput(digest, root));
}
