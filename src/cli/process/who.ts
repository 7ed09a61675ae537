import { hostname, userInfo } from "node:os";

/** Who runs kcore, for records and locks: `user@host`; behind sudo the user who called it. */
export function whoAmI(): string {
  const sudo = process.env["SUDO_USER"];
  return `${sudo && /^[\w.-]+$/.test(sudo) ? sudo : nameOf()}@${hostname()}`;
}

function nameOf(): string {
  try {
    return userInfo().username;
  } catch {
    // A user without an entry in passwd, as in some containers.
    return `uid-${process.getuid?.() ?? 0}`;
  }
}
