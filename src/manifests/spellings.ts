import type { z } from "zod";
import { SourceEntry, SourceList, SourceMap, type SourceNode } from "#engine/yaml/node.ts";
import type { Problems } from "#engine/yaml/problems.ts";
import { keysAt } from "#engine/yaml/schema-keys.ts";

/** A word without hyphens, underscores and capitals, in which spellings differ. */
export function plainWord(word: string): string {
  return word.replaceAll(/[-_]/g, "").toLowerCase();
}

/** A pattern for every spelling of a word: `DiskLayout`, `disk-layout`, `DISK_LAYOUT`. */
export function inAnyCase(word: string): string {
  const letters = plainWord(word)
    .split("")
    .map((one) => (/[a-z]/.test(one) ? `[${one.toUpperCase()}${one}]` : one));
  return `^[-_]*${letters.join("[-_]*")}[-_]*$`;
}

/** The forerunner's words for keys of VMs and networks. */
const aliases: Readonly<Record<string, string>> = {
  cpu: "cpus",
  memoryBytes: "memory",
  storageSizeBytes: "disk",
  nics: "networks",
  targetNode: "node",
  dcId: "dc",
  networkType: "type",
};

/**
 * The tree with keys such as `os_disk` read as the `osDisk` that the schema knows there; their places stay. Keys of
 * maps that take any key (labels, annotations) are left as they are. A key given in both ways is a problem.
 */
export function withCamelKeys(node: SourceNode, schema: z.ZodType, problems: Problems): SourceNode {
  return convert(node, schema, [], problems);
}

function convert(node: SourceNode, schema: z.ZodType, path: readonly PropertyKey[], problems: Problems): SourceNode {
  if (node.kind === "list") {
    const items = node.items.map((item, index) => convert(item, schema, [...path, index], problems));
    return new SourceList(node.file, node.start, node.end, items);
  }
  if (node.kind !== "map") return node;
  const known = keysAt(schema, path);
  const entries = new Map<string, SourceEntry>();
  for (const { key, keyAt, file, start, end, value } of node.entries.values()) {
    const word = camelCase(key);
    const name = [key, word, aliases[word] ?? word].find((one) => known.includes(one)) ?? key;
    const earlier = entries.get(name);
    if (earlier !== undefined)
      problems.add({
        code: "YAML_KEY_DUPLICATE",
        message: `“${key}” and “${node.file.text.slice(earlier.start, earlier.end)}” are the same key`,
        at: keyAt,
        hint: "keep one of them",
      });
    entries.set(name, new SourceEntry(file, start, end, name, convert(value, schema, [...path, name], problems)));
  }
  return new SourceMap(node.file, node.start, node.end, entries, node.flow);
}

/** `osDisk` of `os_disk`. */
export function camelCase(key: string): string {
  return key.replaceAll(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}
