import type { ErrorCode } from "#errors/codes.ts";
import type { Problem } from "#errors/problem.ts";

/** Codes that say that the node cannot be reached, not that something is wrong with it. */
export const unreachable: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "HOST_UNREACHABLE",
  "DNS_FAILED",
  "CHANNEL_REFUSED",
  "HOST_LOST",
]);

/** @param said what the channel printed beside frames */
export function connectionLost(node: string, said: string): Problem {
  const detail = said.trim().slice(-1000);
  return { code: "HOST_LOST", message: `the connection to ${node} was lost`, ...(detail !== "" && { detail }) };
}

export function shellUnusable(node: string, lost: Problem): Problem {
  return {
    ...lost,
    code: "NODE_SHELL_UNUSABLE",
    message: `${node} does not run a POSIX shell for us`,
    hint: "the login shell must allow `exec /bin/sh`; a forced command or a restricted shell prevents it",
  };
}

export function rebootStopped(node: string): Problem {
  return { code: "INTERRUPTED", message: `stopped while ${node} was rebooting` };
}

export function rebootTooLong(node: string, milliseconds: number): Problem {
  return { code: "REBOOT_TIMEOUT", message: `${node} did not come back within ${milliseconds / 1000} s` };
}

export function nodeLocked(node: string, holder: string, since: string): Problem {
  const when = since === "" ? "" : ` since ${new Date(Number(since) * 1000).toISOString()}`;
  const run = runOf(holder);
  return {
    code: "NODE_LOCKED",
    message: `${node} is in use by run ${run}${when}`,
    hint: `wait for it with --wait, or watch it: kcore runs attach ${run}; if its process died: kcore runs resume ${run}`,
  };
}

/** The holder of a lock (`pid:birth:boot:run:who`), as an operator would name it. */
export function runOf(holder: string): string {
  const [, , , run = "?", ...who] = holder.split(":");
  return `${run} of ${who.join(":") || "somebody"}`;
}

export function runnerEnded(node: string, outcome: string, runId: string): Problem {
  return {
    code: "RUN_ABANDONED",
    message: `the runner on ${node} ended by itself (${outcome})`,
    hint: `go on with: kcore runs resume ${runId}`,
  };
}

/** What the follower says when it cannot go on: `CODE TEXT`. */
export function followerFailed(node: string, rest: string): Problem {
  const [code = "", ...words] = rest.split(" ");
  const text = words.join(" ");
  switch (code) {
    case "BASELINE_MISSING":
      return {
        code,
        message: `${node} lacks ${text}`,
        hint: "kcore needs a POSIX userland with setsid, sha256sum, stat -c, readlink and mv -T",
      };
    case "STATE_UNSAFE":
      return {
        code,
        message: `${node}: ${text}`,
        hint: "the state folder must belong to root, be no link, and not be writable for others",
      };
    case "STATE_UNUSABLE":
      return { code, message: `${node}: ${text}`, hint: "is the disk full, or the file system read-only?" };
    default:
      return {
        code: "NODE_SHELL_UNUSABLE",
        message: `${node}: the runner could not be started (${rest})`,
        hint: "does the login run a plain shell? A forced command or a restricted shell prevents it",
      };
  }
}

export function ownBug(error: unknown): Problem {
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
  const hint = "please report it with these lines and the command";
  return { code: "INTERNAL", message: "kcore met a bug of its own", detail: stack, hint };
}
