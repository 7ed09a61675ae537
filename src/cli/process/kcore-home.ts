import { homedir } from "node:os";
import { join } from "node:path";

/** Where contexts lie: KCORE_HOME, else `~/.kcore`. An empty one counts as none. */
export function kcoreHome(): string {
  const { KCORE_HOME: home = "" } = process.env;
  return home === "" ? join(homedir(), ".kcore") : home;
}
