import type { Problem } from "#errors/problem.ts";

/** A failure and the exit status of its command. */
interface FailedCommand {
  readonly problem?: Problem | undefined;
  readonly exitStatus?: number | undefined;
}

/** Codes whose message says only that a command failed: the cause is in the command's own error output. */
const vagueCodes: ReadonlySet<Problem["code"]> = new Set(["STEP_FAILED", "PROBE_FAILED", "LOCAL_COMMAND_FAILED"]);

/**
 * The cause of a failed step in one line: “checksum mismatch (exit 3)”. It is the last line of the errors in the problem's
 * detail; without any, the message.
 */
export function causeLine({ problem, exitStatus }: FailedCommand): string | undefined {
  if (!problem || !vagueCodes.has(problem.code)) return problem?.message;
  const said = problem.detail?.split("\n").findLast((line) => /[\p{L}\p{N}]/u.test(line));
  if (said === undefined) return problem.message;
  return exitStatus === undefined ? said.trim() : `${said.trim()} (${statusText(exitStatus)})`;
}

/** The problem with its cause first, as views draw it: “no space left on device (exit 28)”. */
export function causeFirst<One extends Problem | undefined>(problem: One, exitStatus?: number): One {
  const cause = causeLine({ problem, exitStatus });
  if (!problem || cause === undefined || cause === problem.message) return problem;
  return { ...problem, message: exitStatus === undefined ? `${cause}: ${problem.message}` : cause };
}

function statusText(status: number): string {
  return status > 128 ? `signal ${status - 128}` : `exit ${status}`;
}

/** The problem with the last lines of its detail: the cause is at the end of a command's error output. */
export function endOfDetail(problem: Problem, lines: number): Problem {
  if (!problem.detail) return problem;
  const all = problem.detail.trimEnd().split("\n");
  if (all.length <= lines + 1) return problem;
  return { ...problem, detail: [`… ${all.length - lines} lines before`, ...all.slice(-lines)].join("\n") };
}
