import type { Problem } from "#errors/problem.ts";

/** A failure and the exit status of its command. */
interface Failed {
  readonly problem?: Problem | undefined;
  readonly exitStatus?: number | undefined;
}

/** What these say is that something failed; why, its own errors say. */
const tellLittle: ReadonlySet<Problem["code"]> = new Set(["STEP_FAILED", "PROBE_FAILED", "LOCAL_COMMAND_FAILED"]);

/**
 * Why a step failed, in one line: “checksum mismatch (exit 3)”. It is the last line of the errors that the problem
 * tells in detail, as the end of a run and `runs show` have them below its message; without any, the message.
 */
export function causeLine({ problem, exitStatus }: Failed): string | undefined {
  if (!problem || !tellLittle.has(problem.code)) return problem?.message;
  const said = problem.detail?.split("\n").findLast((line) => /[\p{L}\p{N}]/u.test(line));
  if (said === undefined) return problem.message;
  return exitStatus === undefined ? said.trim() : `${said.trim()} (${ended(exitStatus)})`;
}

/** The problem with its cause first, as views draw it: “no space left on device (exit 28)”. */
export function causeFirst<One extends Problem | undefined>(problem: One, exitStatus?: number): One {
  const cause = causeLine({ problem, exitStatus });
  if (!problem || cause === undefined || cause === problem.message) return problem;
  return { ...problem, message: exitStatus === undefined ? `${cause}: ${problem.message}` : cause };
}

function ended(status: number): string {
  return status > 128 ? `signal ${status - 128}` : `exit ${status}`;
}
