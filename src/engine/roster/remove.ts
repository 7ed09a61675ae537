import { plainOf, type SourceEntry, type SourceMap } from "#engine/yaml/node.ts";
import {
  afterColon,
  cannotEdit,
  endOf,
  isWithin,
  nodeEntryOf,
  notByLines,
  read,
  verified,
  type Splice,
} from "./edit.ts";
import type { RosterText } from "./roster-files.ts";

/**
 * The text without a node's own lines; every other line stays, also a comment above the node. Undefined if the file has no such node.
 * @throws KcoreError ROSTER_EDIT; errors of parsing
 */
export function removeNode(source: RosterText, name: string): string | undefined {
  const root = read(source);
  const entry = nodeEntryOf(root, name);
  if (root.kind !== "map" || entry === undefined) return undefined;
  const plain = plainOf(root) as Record<string, Record<string, unknown>>;
  const { [name]: _, ...others } = plain["nodes"] ?? {};
  return verified(source, root, [removingSplice(source.text, root, entry)], { ...plain, nodes: others });
}

function removingSplice(text: string, root: SourceMap, entry: SourceEntry): Splice {
  const own = root.entries.get("nodes") as SourceEntry;
  const nodes = own.value as SourceMap;
  if (!isWithin(own, nodes)) throw cannotEdit(own, "nodes is an alias");
  const all = [...nodes.entries.values()];
  const at = all.indexOf(entry);
  const [before, after] = [all[at - 1], all[at + 1]];
  if (nodes.flow || entry.file.name.endsWith(".json"))
    return before
      ? { start: endOf(before), end: endOf(entry), text: "" }
      : { start: entry.start, end: after ? after.start : endOf(entry), text: "" };
  if (!before && !after) return { start: afterColon(text, own), end: endOf(entry), text: " {}" };
  const lineEnd = text.indexOf("\n", endOf(entry));
  return { start: entry.file.lineAt(entry.start).start, end: lineEnd === -1 ? text.length : lineEnd + 1, text: "" };
}

/** The text without the line of this top-level key, whose value is a scalar; every other line stays. @throws KcoreError ROSTER_EDIT */
export function removeEntry(source: RosterText, key: string): string {
  const root = read(source);
  const entry = root.kind === "map" ? root.entries.get(key) : undefined;
  if (root.kind !== "map" || root.flow || entry?.value.kind !== "scalar") throw notByLines(root);
  const { start, text: line } = entry.file.lineAt(entry.start);
  const end = start + line.length;
  const lineBreak = /^\r?\n/.exec(source.text.slice(end))?.[0] ?? "";
  const { [key]: _, ...others } = plainOf(root) as Record<string, unknown>;
  return verified(source, root, [{ start, end: end + lineBreak.length, text: "" }], others);
}
