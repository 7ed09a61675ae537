import { parsePlainYaml, printYaml } from "#engine/yaml/plain-yaml.ts";
import type { ContextHome } from "#pki/contexts.ts";
import { kcoreHome } from "../process/kcore-home.ts";

export function contextHome(): ContextHome {
  return { home: kcoreHome(), codec: { parse: (text) => parsePlainYaml(text), print: printYaml } };
}
