import { readFileSync } from "node:fs";
import { isAbsolute, join, relative } from "node:path";
import { drawProblems } from "#errors/draw.ts";
import { exitCodes, KcoreError, type ExitCode, type Problem, type SourcePosition } from "#errors/problem.ts";
import { detectCi, escapeForCi } from "#tui/ci.ts";
import { shippedRoot } from "#engine/project/shipped.ts";
import { isScreen } from "./choose-view.ts";
import { printJson } from "./print-json.ts";

export interface FailureReportOptions {
  readonly debug: boolean;
  readonly json: boolean;
  /** The base of relative paths in problems; by default the working folder. */
  readonly project?: string;
}

/**
 * Writes the error of a command to stderr, a KcoreError as problems, any other as a bug; returns the exit code. A closed
 * pipe is no failure.
 */
export function reportFailure(
  error: unknown,
  { debug, json, project = process.cwd() }: FailureReportOptions,
): ExitCode {
  if (isClosedPipe(error)) return exitCodes.done;
  if (!(error instanceof KcoreError)) return reportBug(error, json);
  if (json) process.stderr.write(`${printJson({ problems: error.problems })}\n`);
  else printProblems(error.problems, project);
  if (debug && !json) process.stderr.write(`\n${stackOf(error)}\n`);
  return error.exitCode;
}

/** Writes problems to stderr, escaped so that a CI finds no commands in quoted text. */
export function printProblems(problems: readonly Problem[], project: string): void {
  const text = drawProblems(problems, { color: wantsColor(process.stderr), sourceLine: sourceLines(project) });
  if (text !== "") process.stderr.write(`${escapeForCi(detectCi(process.env), text)}\n`);
}

/** Whether to colour: on a terminal that a user watches, unless NO_COLOR is set (no-color.org). */
export function wantsColor(stream: NodeJS.WriteStream): boolean {
  return isScreen(stream) && !process.env["NO_COLOR"] && process.env["TERM"] !== "dumb";
}

/** Returns a function that reads the line at a position, from the project or the shipped files; undefined without one. */
export function sourceLines(project: string): (at: SourcePosition) => string | undefined {
  return ({ file, line }) => {
    for (const path of isAbsolute(file) ? [file] : [join(project, file), join(shippedRoot(), file)])
      try {
        return readFileSync(path, "utf8").split(/\r?\n/)[line - 1];
      } catch {
        // The file is missing here: try the next place.
      }
    return undefined;
  };
}

function reportBug(error: unknown, json: boolean): ExitCode {
  const stack = stackOf(error);
  if (json) {
    const message = error instanceof Error ? error.message : String(error);
    process.stderr.write(`${printJson({ problems: [{ code: "INTERNAL", message, detail: stack }] })}\n`);
  } else
    process.stderr.write(
      `kcore met a bug of its own  [INTERNAL]\n${stack}\n  hint: please report it with these lines and the command\n`,
    );
  return exitCodes.bug;
}

function stackOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause === undefined ? "" : `\ncaused by: ${stackOf(error.cause)}`;
  return `${error.stack ?? error.message}${cause}`;
}

function isClosedPipe(error: unknown): boolean {
  return error instanceof Error && (error as NodeJS.ErrnoException).code === "EPIPE";
}

/** A file of the project as its repository names it; `workspace` is the repository's folder. */
export function fileInRepository({ file }: SourcePosition, project: string, workspace: string): string {
  return relative(workspace, isAbsolute(file) ? file : join(project, file));
}
