import { formatSending } from "#base/units.ts";
import type { ErrorCode } from "#errors/codes.ts";
import type { Problem } from "#errors/problem.ts";
import { shellUnusable } from "#engine/transport/host-problems.ts";
import type { TransitionContext } from "./session-events.ts";

/** Codes of a node that cannot be reached: the node's outcome is `unreachable`. With any other code the outcome is `failed`. */
export const unreachableCodes: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "HOST_UNREACHABLE",
  "DNS_FAILED",
  "CHANNEL_REFUSED",
  "HOST_LOST",
]);

/** @param output printed by the channel beside its frames */
export function connectionLost(node: string, output: string): Problem {
  const detail = output.trim().slice(-1000);
  return { code: "HOST_LOST", message: `the connection to ${node} was lost`, ...(detail !== "" && { detail }) };
}

/** The reason for closing a working connection: a change on trial. */
export function confirmationDue(node: string, seconds: number): Problem {
  return { code: "HOST_LOST", message: `a new connection to ${node} has to confirm the change within ${seconds} s` };
}

export function transferStalled({
  node,
  name,
  sent,
  size,
  silent,
}: {
  node: string;
  name: string;
  sent: number;
  size: number;
  silent: number;
}): Problem {
  return {
    code: "TRANSFER_STALLED",
    message: `${node} took nothing more of ${name} for ${silent} s, after ${formatSending({ sent, total: size })}`,
    hint: `the connection lives, but what reads there does not: a disk that hangs, a frozen process? Then go on with: kcore runs resume`,
  };
}

export function rebootStopped(node: string): Problem {
  return { code: "INTERRUPTED", message: `stopped while ${node} was rebooting` };
}

export function abortUnanswered({ node, runId }: Pick<TransitionContext, "node" | "runId">): Problem {
  const message = `${node} did not end its step within a minute of the abort`;
  return {
    code: "INTERRUPTED",
    message,
    hint: `it may still be at work: kcore runs abort ${runId} ends what is left there`,
  };
}

/** @param seen why the last attempt to reach the node failed; undefined: the connection never broke */
export function rebootTooLong(
  { node, console = () => undefined }: Pick<TransitionContext, "node" | "console">,
  milliseconds: number,
  seen: string | undefined,
): Problem {
  const message = `${node} did not come back within ${milliseconds / 1000} s`;
  const lines = console();
  const last = `last seen: ${seen ?? "the connection of its old boot, which has not ended"}`;
  return {
    code: "REBOOT_TIMEOUT",
    message,
    detail: lines === undefined ? last : `${last}\nlast on its console:\n${lines}`,
  };
}

export function nodeLocked(node: string, holder: string, since: string): Problem {
  const when = /^\d{1,12}$/.test(since) ? ` since ${new Date(Number(since) * 1000).toISOString()}` : "";
  const { run, who } = holderOf(holder);
  return {
    code: "NODE_LOCKED",
    message: `${node} is in use by run ${run} of ${who}${when}`,
    hint: `wait for it with --wait, or watch it: kcore runs attach ${run}; if its process died: kcore runs resume ${run}, or kcore runs abort ${run}`,
  };
}

/** The run that holds a lock (`pid:start time:boot:run:who`), and its operator. */
export function holderOf(holder: string): { readonly run: string; readonly who: string } {
  const [, , , run = "?", ...who] = holder.split(":");
  return { run, who: who.join(":") || "somebody" };
}

/**
 * Modules whose argument `owner` makes a folder of that user above the step's path acceptable (ADR 0306). The value is a further
 * condition: the archive's own folder must be root's, and edits apply `owner` only to a new file.
 */
const ownerModules: ReadonlyMap<string, string> = new Map([
  ["archive.extracted", ", and the step unpacks into it"],
  ["certificate.dropped", ""],
  ["directory.managed", ""],
  ["directory.synced", ""],
  ["file.block", ", and the file does not exist yet"],
  ["file.downloaded", ""],
  ["file.line", ", and the file does not exist yet"],
  ["file.managed", ""],
  ["key.generated", ""],
]);

/** The hint for a refusal whose own message has none. */
export function refusalHint({ code, detail = "" }: Problem, module: string): string | undefined {
  if (code === "UNIT_STATIC")
    return "“enabled: keep” keeps it running and leaves alone what starts it at boot; or enable the unit that starts it, such as its timer or socket, or those that its Also= names";
  if (code !== "FILE_PARENT_UNSAFE") return undefined;
  const folders = [...detail.matchAll(/^(\/.*?) (?:belongs to (\S+)|is writable for others)$/gm)];
  if (folders.length === 0) return undefined;
  const mend = folders.map(([, path, user]) => `${user === undefined ? "chmod go-w" : "chown root"} ${path}`);
  const users = new Set(folders.map(([, , user]) => user));
  const [user] = users;
  const byHand = `on the node: ${mend.join("; ")}`;
  const condition = ownerModules.get(module);
  if (users.size > 1 || user === undefined || condition === undefined) return byHand;
  return `if the folder is meant to be ${user}'s${condition}, give the step “owner: ${user}”; else ${byHand}`;
}

export function runnerEnded(node: string, outcome: string, runId: string): Problem {
  if (outcome === "full") return followerFailed(node, "STATE_UNUSABLE no room is left in the state folder");
  return {
    code: "RUN_ABANDONED",
    message: `the runner on ${node} ended by itself (${outcome})`,
    hint: `go on with: kcore runs resume ${runId}`,
  };
}

/** The problem of a follower that cannot continue: its frame is `CODE TEXT`. */
export function followerFailed(node: string, rest: string): Problem {
  const [code = "", ...words] = rest.split(" ");
  const text = words.join(" ");
  // A forced command that echoes its input sends back kcore's own start line (bootstrap.ts), in which `;exit 1` follows the code.
  if (code.includes(";")) return shellUnusable(node, "the program there sends back all that kcore sends");
  switch (code) {
    case "ASTRAY":
      return {
        code: "NODE_SHELL_UNUSABLE",
        message: `${node}: another shell or command reads what kcore sends`,
        hint: "a start-up file of the login shell (.bashrc, .profile, .zshenv, .cshrc) starts a shell of its own, or reads (read, ssh, cat); let it do so for interactive logins alone: case $- in *i*) exec fish ;; esac",
      };
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
    case "RUN_SUPERSEDED":
      return {
        code,
        message: `another process works for this run on ${node}`,
        hint: "this process does nothing more there; the work of the other process: kcore runs attach",
      };
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
