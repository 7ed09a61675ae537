import { parseForeign } from "#engine/yaml/foreign.ts";
import type { SourceMap, SourceNode } from "#engine/yaml/node.ts";
import { KcoreError } from "#errors/problem.ts";

export const formats = ["salt", "ansible", "ssh-config", "terraform", "csv"] as const;
export type Format = (typeof formats)[number];

/** A file's most likely format, by its contents. @throws KcoreError ROSTER_IMPORT where they fit none */
export function guessFormat(file: string, text: string): Format {
  const found = byLines(text) ?? byTree(file, text);
  if (found !== undefined) return found;
  throw new KcoreError({
    code: "ROSTER_IMPORT",
    message: `the format of ${file} cannot be told from its content`,
    hint: `say it: --from ${formats.join(" | ")}`,
  });
}

function byLines(text: string): Format | undefined {
  const lines = text.split(/\r?\n/).filter((line) => !/^\s*([#;]|$)/.test(line) || line.startsWith("#!"));
  const [first = ""] = lines;
  if (/^#!.*(jinja|yaml|mako|py\b)/.test(first) && !first.startsWith("#!/")) return "salt";
  if (lines.some((line) => /^\s*(Host|Match)(\s+|\s*=\s*)\S/i.test(line)) && !lines.some((line) => /^\s*\[/.test(line)))
    return "ssh-config";
  if (/^"?(name|host(name)?|address|node|ip)"?\s*[,;\t]/i.test(first)) return "csv";
  const isTree = lines.some((line) => /^[^\s=[]+:(\s|$)/.test(line)) || /^\s*[{]|^---/.test(first);
  if (lines.some((line) => /^\[[^\]]+\]\s*([#;].*)?$/.test(line)) || (!isTree && lines.some(isHostLine)))
    return "ansible";
  return undefined;
}

/** `web01 ansible_host=192.0.2.11`: an inventory without sections. */
function isHostLine(line: string): boolean {
  return /^\S+\s+[\w.]+=/.test(line) || /^[A-Za-z0-9][\w.[\]:-]*$/.test(line.trim());
}

function byTree(file: string, text: string): Format | undefined {
  // A Jinja template is not YAML yet; of the formats read here, only Salt's rosters are templates.
  if (/\{%/.test(text)) return "salt";
  const root = parseForeign(file, text);
  if (root.kind !== "map") return undefined;
  const values = [...root.entries.values()].map(({ value }) => value);
  const has = (...keys: readonly string[]): boolean => values.some((value) => keys.some((key) => hasKey(value, key)));
  if (root.entries.has("_meta") || root.entries.has("plugin") || has("hosts", "children") || root.entries.has("all"))
    return "ansible";
  if (has("sensitive") || has("address", "public_ip", "ip", "private_ip")) return "terraform";
  if (has("host")) return "salt";
  const isJson = /^\s*\{/.test(text);
  return values.length > 0 && values.every((value) => value.kind === "scalar")
    ? isJson
      ? "terraform"
      : "salt"
    : undefined;
}

function hasKey(value: SourceNode, key: string): boolean {
  return value.kind === "map" && (value as SourceMap).entries.has(key);
}
