import { exitCodes, KcoreError, type Problem } from "#errors/problem.ts";
import type { ErrorCode } from "#errors/codes.ts";

/**
 * Why a host could not be reached, or was lost:
 * `busy` its sshd dropped the connection before the login (MaxStartups, penalties): try again later, with fewer at once;
 * `files` this machine opens no further file for kcore (EMFILE, ENFILE): try again when others are closed;
 * `timeout`, `refused`, `lost` the network; `dns` the name; `handshake` the two sides cannot talk to each other.
 */
export type UnreachableReason = "busy" | "files" | "timeout" | "refused" | "lost" | "dns" | "handshake";

/** A host that cannot be reached now. Exit code 3. */
export class HostUnreachable extends KcoreError {
  readonly reason: UnreachableReason;

  constructor(
    reason: UnreachableReason,
    problem: { message: string; hint?: string | undefined; detail?: string | undefined; code?: ErrorCode },
    cause?: unknown,
  ) {
    super({ code: "HOST_UNREACHABLE", ...problem }, { cause, exitCode: exitCodes.unreachable });
    this.reason = reason;
  }
}

/** The error for one host that its operator has to repair; other hosts are not affected. Exit code 1. */
export function hostFailure(
  problem: { code: ErrorCode; message: string; hint?: string | undefined; detail?: string | undefined },
  cause?: unknown,
): KcoreError {
  return new KcoreError(problem, { cause, exitCode: exitCodes.failed });
}

/** The problem of a login that runs no POSIX shell for kcore; `output`: printed by the login instead. */
export function shellUnusable(host: string, output = ""): Problem {
  const detail = output.trim();
  return {
    code: "NODE_SHELL_UNUSABLE",
    message: `${host} does not run a POSIX shell for us`,
    ...(detail !== "" && { detail }),
    hint: "the login shell must allow `exec /bin/sh`; a forced command, a restricted shell, or a start-up file that starts another program, or reads (.bashrc: exec fish, read, cat), prevents it",
  };
}

/** A host accepted none of the offered keys, or not the offered password. */
export class LoginRefused extends KcoreError {
  readonly host: string;

  constructor(
    host: string,
    problem: { message: string; hint?: string | undefined; detail?: string | undefined },
    cause?: unknown,
  ) {
    super({ code: "AUTH_FAILED", ...problem }, { cause, exitCode: exitCodes.failed });
    this.host = host;
  }
}

/** The error of an operation that its caller aborted. */
export function interrupted(what: string, cause?: unknown): KcoreError {
  return new KcoreError(
    { code: "INTERRUPTED", message: `${what} was called off` },
    { cause, exitCode: exitCodes.interrupted },
  );
}

/** The text of anything thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
