import { existsSync } from "node:fs";
import { join } from "node:path";
import type { RunModel } from "#engine/events/run-model.ts";
import { isAlive } from "#engine/run/process-mark.ts";
import { readHeader, type RunFolder } from "#engine/run/run-folder.ts";
import { exitCodes, type SourcePosition } from "#errors/problem.ts";
import { fileInRepository, printProblems } from "../terminal/report-failure.ts";
import { digestRecord, drawForOutput } from "../records/print-digest.ts";
import type { LineStyle, ViewName } from "../terminal/choose-view.ts";

interface EndOptions {
  readonly folder: RunFolder;
  /** The view in which the run was shown. */
  readonly output: ViewName | "quiet";
  readonly style?: LineStyle | undefined;
}

/**
 * Prints the digest below a run's view; with `output` quiet, or if the run did not begin, only the run's own problems. Prints nothing
 * below JSON, nor after a success with `--quiet`.
 */
export async function printEnd(model: RunModel, { output, style, folder }: EndOptions): Promise<void> {
  if (output === "json" || (style?.detail === "quiet" && model.exitCode === exitCodes.done)) return;
  const { project } = folder;
  if (model.runId === "" || output === "quiet") {
    const { ownProblems } = await import("#tui/tally.ts");
    return printProblems(ownProblems(model), project);
  }
  const header = await readHeader(folder);
  const digest = await digestRecord({ folder, header, model, alive: isAlive(header.process) });
  const text = await drawForOutput(digest, project, { isEnd: true });
  const { detectCi, drawCiErrors, escapeForCi } = await import("#tui/ci.ts");
  const ci = output === "plain" ? detectCi(process.env) : undefined;
  process.stdout.write(`\n${escapeForCi(ci, text)}`);
  const errors = ci === "github" ? drawCiErrors(digest, (at) => pathInRepository(at, project)) : "";
  if (errors !== "") process.stdout.write(`${errors}\n`);
}

/** The path of a project's file in the repository that GitHub checked out; undefined for a shipped file. */
function pathInRepository(at: SourcePosition, project: string): string | undefined {
  if (!existsSync(join(project, at.file))) return undefined;
  return fileInRepository(at, project, process.env["GITHUB_WORKSPACE"] || project);
}
