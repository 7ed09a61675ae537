import { homedir } from "node:os";
import { join } from "node:path";
import { parsePlainYaml, printYaml } from "#engine/yaml/plain-yaml.ts";
import type { ContextHome } from "#pki/contexts.ts";

/** Where contexts lie: KCORE_HOME, else `~/.kcore`. */
export function kcoreHome(): string {
  return process.env["KCORE_HOME"] ?? join(homedir(), ".kcore");
}

export function contextHome(): ContextHome {
  return { home: kcoreHome(), codec: { parse: (text) => parsePlainYaml(text), print: printYaml } };
}
