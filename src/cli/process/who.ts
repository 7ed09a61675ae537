import { hostname, userInfo } from "node:os";

/** The user who runs kcore, for records and locks: `user@host`; for root behind sudo the user who called it. */
export function whoAmI(env: NodeJS.ProcessEnv = process.env, uid: number = process.getuid?.() ?? 0): string {
  // Every user can set the variable; for root it is sudo's own (sudo(8)).
  const sudo = uid === 0 ? env["SUDO_USER"] : undefined;
  return `${sudo && /^[\w.-]+$/.test(sudo) ? sudo : userName()}@${hostname()}`;
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // A user without an entry in passwd, as in some containers.
    return `uid-${process.getuid?.() ?? 0}`;
  }
}
