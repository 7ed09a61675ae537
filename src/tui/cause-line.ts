import type { Problem } from "#errors/problem.ts";

/** A failure and the exit status of its command. */
interface FailedCommand {
  readonly problem?: Problem | undefined;
  readonly exitStatus?: number | undefined;
}

/** Codes of a message that says only that a command failed; the cause is in the command's error output. */
const vagueCodes: ReadonlySet<Problem["code"]> = new Set(["STEP_FAILED", "PROBE_FAILED", "LOCAL_COMMAND_FAILED"]);

/**
 * The cause of a failed step in one line: “checksum mismatch (exit 3)”. For a failed command it is the last line of the
 * problem's detail, if there is one; else the problem's message. Undefined without a problem.
 */
export function causeLine({ problem, exitStatus }: FailedCommand): string | undefined {
  if (!problem || !vagueCodes.has(problem.code)) return problem?.message;
  const last = problem.detail?.split("\n").findLast((line) => /[\p{L}\p{N}]/u.test(line));
  if (last === undefined) return problem.message;
  return exitStatus === undefined ? last.trim() : `${last.trim()} (${statusText(exitStatus)})`;
}

/** The problem with its cause at the start of its message, as views draw it: “no space left on device (exit 28)”. */
export function causeFirst<One extends Problem | undefined>(problem: One, exitStatus?: number): One {
  const cause = causeLine({ problem, exitStatus });
  if (!problem || cause === undefined || cause === problem.message) return problem;
  return { ...problem, message: exitStatus === undefined ? `${cause}: ${problem.message}` : cause };
}

function statusText(status: number): string {
  return status > 128 ? `signal ${status - 128}` : `exit ${status}`;
}

/** The problem with only the last lines of its detail: a command's error output ends with the cause. */
export function endOfDetail(problem: Problem, lines: number): Problem {
  if (!problem.detail) return problem;
  const all = problem.detail.trimEnd().split("\n");
  if (all.length <= lines + 1) return problem;
  return { ...problem, detail: [`… ${all.length - lines} lines before`, ...all.slice(-lines)].join("\n") };
}
