import { isIP } from "node:net";
import type { Problem } from "#errors/problem.ts";
import { hostFailure } from "./host-problems.ts";
import type { Endpoint } from "./host.ts";

const hostName = /^(?!-)[A-Za-z0-9_-]{1,63}(\.(?!-)[A-Za-z0-9_-]{1,63})*\.?$/;
const userName = /^([A-Za-z0-9_.-]{1,63}\\)?[A-Za-z0-9_.][A-Za-z0-9_.@+-]{0,127}\$?$/;

/**
 * Checks an endpoint's values, and those of its jump hosts, against allow-lists (S-2), a second time after the roster. ssh2 starts no
 * shell, so no command can be injected there. The files for OpenSSH's client (openssh-config.ts) rely on this check.
 * @throws KcoreError ENDPOINT_INVALID
 */
export function checkEndpoint({ name, address, port, user, jump }: Endpoint): void {
  const problems: Problem[] = [];
  const refuse = (message: string) =>
    problems.push({ code: "ENDPOINT_INVALID", message: `${printable(name)}: ${message}` });
  const [ip, zone, ...more] = address.split("%");
  const isAddress =
    isIP(ip ?? "") !== 0 && more.length === 0 && (zone === undefined || /^[A-Za-z0-9._-]{1,15}$/.test(zone));
  if (!isAddress && (address.length > 253 || !hostName.test(address)))
    refuse(`“${printable(address)}” is neither a host name nor an IP address`);
  if (!userName.test(user)) refuse(`“${printable(user)}” is not a user name that kcore logs in with`);
  if (!Number.isInteger(port) || port < 1 || port > 65535) refuse(`${port} is not a port`);
  if (problems[0]) throw hostFailure(problems[0]);
  for (const hop of jump) checkEndpoint(hop);
}

/** A value that failed its check, without characters that could move a cursor. */
function printable(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text)
    .slice(1, -1)
    .replace(/[^ -~\u2026]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
