import { homedir } from "node:os";
import { join } from "node:path";
import { parsePlainYaml, printYaml } from "#engine/yaml/plain-yaml.ts";
import type { ContextHome } from "#pki/contexts.ts";

/** The folder of contexts: KCORE_HOME, else `~/.kcore`. An empty variable counts as none. */
export function kcoreHome(): string {
  const { KCORE_HOME: home = "" } = process.env;
  return home === "" ? join(homedir(), ".kcore") : home;
}

/** The folder of contexts, with the YAML in which they are read and written. */
export function contextHome(): ContextHome {
  return { home: kcoreHome(), codec: { parse: parsePlainYaml, print: printYaml } };
}
