import { omitUndefined } from "#base/omit-undefined.ts";
import type { ErrorCode } from "./codes.ts";

/** A place in a file that an operator wrote; line and column count from 1, as an editor shows them. */
export interface SourcePosition {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  /** Length of the fault in characters, for underlining; 1 when absent. */
  readonly length?: number;
}

/** One fault, described so that an operator can act on it. Plain JSON; an undefined field counts as absent. */
export interface Problem {
  readonly code: ErrorCode;
  /** One sentence without a final stop that names the thing. */
  readonly message: string;
  readonly at?: SourcePosition | undefined;
  /** The next thing to type or to check. */
  readonly hint?: string | undefined;
  /** More lines, shown indented: a remote stderr, a list of candidates. */
  readonly detail?: string | undefined;
  /** The line may hold a secret: show its place, never its text. */
  readonly conceal?: true;
}

/** The exit codes of commands (docs/reading-a-run.md, For scripts). */
export const exitCodes = {
  done: 0,
  failed: 1,
  usage: 2,
  unreachable: 3,
  differs: 4,
  bug: 70,
  interrupted: 130,
} as const;
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** An expected failure: one or more problems that an operator can act on. Any other error is a bug. */
export class KcoreError extends Error {
  readonly problems: readonly Problem[];
  /** The exit code of a command that fails with this error; by default 2, for wrong input. */
  readonly exitCode: ExitCode;

  constructor(
    problems: Problem | readonly Problem[],
    { cause, exitCode = exitCodes.usage }: { cause?: unknown; exitCode?: ExitCode } = {},
  ) {
    const list = Array.isArray(problems) ? (problems as readonly Problem[]) : [problems as Problem];
    super(list.map((problem) => problem.message).join("\n"), cause === undefined ? undefined : { cause });
    this.name = "KcoreError";
    this.problems = list.map(omitUndefined);
    this.exitCode = exitCode;
  }
}

/** The error of a command line that cannot be carried out as it stands. */
export function usageError(message: string, hint?: string): KcoreError {
  return new KcoreError({ code: "USAGE", message, hint });
}

/** The problem's place, message and code on one line, for logs and tests; drawProblem has the full form. */
export function formatProblem({ code, message, at }: Problem): string {
  const place = at ? `${at.file}:${at.line}:${at.column}  ` : "";
  return `${place}${message}  [${code}]`;
}
