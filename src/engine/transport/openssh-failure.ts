import type { Endpoint } from "./host.ts";
import { hostKeyProblem, type TrustedKeys } from "./host-key.ts";
import { HostUnreachable, hostFailure, LoginRefused, type UnreachableReason } from "./host-problems.ts";

/** ssh's messages to its user, without its own trace. */
export function sshMessages(stderr: string): readonly string[] {
  return stderr
    .split(/\r?\n/)
    .filter((line) => line.trim() !== "" && !/^(debug\d|OpenSSH_|Authenticated to )/.test(line));
}

/** The key that the host presented last, as ssh's trace has it. */
function presentedKey(stderr: string): { readonly type: string; readonly fingerprint: string } | undefined {
  const [, type, fingerprint] = [...stderr.matchAll(/^debug1: Server host key: (\S+) (SHA256:\S+)/gm)].at(-1) ?? [];
  return type === undefined || fingerprint === undefined ? undefined : { type, fingerprint };
}

/** The host key in use: its fingerprint, and the key itself if it is one of the trusted keys. */
export function keyInUse(
  stderr: string,
  { keys }: TrustedKeys,
): { readonly fingerprint: string; readonly hostKey?: string } {
  const { fingerprint = "" } = presentedKey(stderr) ?? {};
  const known = keys.find((key) => key.fingerprint === fingerprint);
  return { fingerprint, ...(known && { hostKey: `${known.type} ${known.key}` }) };
}

const unreachable: readonly (readonly [RegExp, UnreachableReason, string])[] = [
  [/Could not resolve hostname/, "dns", "is the name spelled right, and does this machine's resolver know it?"],
  [/Connection refused/, "refused", "nothing listens there: is sshd running, and is this its port?"],
  [
    /timed out|Timeout, server/,
    "timeout",
    "it does not answer: is the machine up, and does a firewall allow this port?",
  ],
  [
    /kex_exchange_identification|Connection reset|Not allowed at this time/,
    "busy",
    "its sshd may have too many logins at once (MaxStartups)",
  ],
  [/no matching|Unable to negotiate/, "handshake", "the two sides have no algorithm in common"],
];

/** The error for a failed login, read from ssh's messages: the same errors as those of the ssh2 transport. */
export function loginFailure(endpoint: Endpoint, trusted: TrustedKeys, stderr: string): Error {
  const lines = sshMessages(stderr);
  const said = lines.join("\n");
  const { name, address, port, user } = endpoint;
  if (/^(sh: )?.*ssh: (command )?not found|ssh: No such file/m.test(said))
    return hostFailure({
      code: "TOOL_MISSING",
      message: `${name} is to be reached by ssh, which is not on this machine`,
      hint: "install openssh-client, or leave “transport” out of the roster",
    });
  if (said.includes("Host key verification failed") || said.includes("REVOKED HOST KEY")) {
    const presented = presentedKey(stderr);
    const problem = presented && hostKeyProblem({ name, address, port }, presented, trusted);
    if (problem) return problem;
  }
  const detail = said;
  if (/Permission denied|Too many authentication failures/.test(said))
    return new LoginRefused(name, {
      message: `${name} does not let ${user} in: ${lines.findLast((line) => /denied|failures/.test(line)) ?? ""}`,
      hint: `does “ssh -o BatchMode=yes ${user}@${address}” get in? Keys with a passphrase must be in the agent`,
      detail,
    });
  const [, reason, hint] = unreachable.find(([pattern]) => pattern.test(said)) ?? [
    undefined,
    "lost" as const,
    undefined,
  ];
  return new HostUnreachable(reason, {
    message: `${name} cannot be reached at ${address} port ${port} by ssh: ${lines.at(-1) ?? "it said nothing"}`,
    ...(reason === "dns" && { code: "DNS_FAILED" }),
    hint,
    detail,
  });
}
