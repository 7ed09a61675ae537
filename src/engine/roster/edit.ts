import { isDeepStrictEqual } from "node:util";
import { KcoreError } from "#errors/problem.ts";
import { type SourceEntry, SourceMap, type SourceNode } from "#engine/yaml/node.ts";
import { plainOf } from "#engine/yaml/node.ts";
import { parseSource } from "#engine/yaml/parse.ts";
import { MAX_ROSTER_BYTES } from "#engine/yaml/scan.ts";
import { isNothing, type RosterText } from "./roster-files.ts";
import { asFlow, asKey, type Plain } from "./flow-yaml.ts";

/** A change of the text: the characters from `start` to `end` give way to `text`. */
export interface Splice {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/**
 * The text with one more node at the end of `nodes:`; every other line stays as it is, byte for byte.
 * @throws KcoreError ROSTER_DUPLICATE, ROSTER_EDIT
 */
export function addNode({ file, text }: RosterText, name: string, fields: Readonly<Record<string, Plain>>): string {
  const root = parse(file, text);
  const nodes = root.get("nodes");
  if (nodes?.kind === "map" && nodes.entries.has(name))
    throw new KcoreError({
      code: "ROSTER_DUPLICATE",
      message: `“${name}” is in the roster already`,
      at: nodes.entries.get(name)?.keyAt ?? nodes.at,
    });
  const edited = splice(text, nodeSplice(text, root, name, fields));
  const before = plainOf(root) as Record<string, unknown>;
  const nodesBefore = (before["nodes"] ?? {}) as Record<string, unknown>;
  return verified(file, edited, { ...before, nodes: { ...nodesBefore, [name]: fields } });
}

function nodeSplice(text: string, root: SourceMap, name: string, fields: Readonly<Record<string, Plain>>): Splice {
  const entry = root.entries.get("nodes");
  if (entry === undefined) return append(text, root, ["nodes:", ...nodeLines("  ", name, fields)]);
  const { value: nodes } = entry;
  if (isNothing(nodes)) return insertLines(text, entry.end, nodeLines("  ", name, fields));
  if (nodes.kind !== "map") throw cannotEdit(nodes, "nodes: is not a map");
  if (nodes.flow) {
    if (!isWithin(entry, nodes)) throw cannotEdit(entry, "nodes: is an alias");
    return intoEmptyFlow(text, root, nodes, nodeLines("  ", name, fields)) ?? intoFlow(nodes, name, fields);
  }
  const last = [...nodes.entries.values()].at(-1);
  if (last === undefined || !isWithin(entry, nodes)) throw cannotEdit(entry, "nodes: is an alias");
  const indent = " ".repeat(last.keyAt.column - 1);
  return insertLines(text, endOf(last), nodeLines(indent, name, fields));
}

/**
 * The text with these pinned keys of one node instead of those it has; every other line stays as it is.
 * @throws KcoreError ROSTER_NODE_UNKNOWN, ROSTER_EDIT
 */
export function setHostKeys({ file, text }: RosterText, name: string, keys: readonly string[]): string {
  const root = parse(file, text);
  const entry = nodeEntryOf(file, root, name);
  const edited = splice(text, ...hostKeySplices(text, entry, keys));
  const before = plainOf(root) as { nodes: Record<string, Record<string, unknown> | null> };
  const changed = { ...before.nodes[name], hostKeys: [...keys] };
  return verified(file, edited, { ...before, nodes: { ...before.nodes, [name]: changed } });
}

/**
 * The text with these fields of one node instead of those it has, others of it as they are; every other line stays.
 * @throws KcoreError ROSTER_NODE_UNKNOWN, ROSTER_EDIT
 */
export function setNodeFields(
  { file, text }: RosterText,
  name: string,
  fields: Readonly<Record<string, Plain>>,
): string {
  return Object.entries(fields).reduce((edited, [key, value]) => setField(file, edited, name, key, value), text);
}

function setField(file: string, text: string, name: string, key: string, value: Plain): string {
  const root = parse(file, text);
  const entry = nodeEntryOf(file, root, name);
  const before = plainOf(root) as { nodes: Record<string, Record<string, unknown> | null> };
  const nodes = { ...before.nodes, [name]: { ...before.nodes[name], [key]: value } };
  return verified(file, splice(text, fieldSplice(text, entry, key, value)), { ...before, nodes });
}

function fieldSplice(text: string, entry: SourceEntry, key: string, value: Plain): Splice {
  const { value: node } = entry;
  const written = `${asKey(key)}: ${asFlow(value)}`;
  if (isNothing(node)) return { start: afterColon(text, entry), end: afterColon(text, entry), text: ` { ${written} }` };
  if (node.kind !== "map" || !isWithin(entry, node)) throw cannotEdit(entry, "the node is an alias");
  const old = node.entries.get(key);
  if (old !== undefined) return replaceValue(text, old, value);
  if (node.flow) return intoFlow(node, key, value);
  const last = [...node.entries.values()].at(-1);
  if (last === undefined) throw cannotEdit(entry, "the node is empty");
  return insertLines(text, endOf(last), [`${" ".repeat(last.keyAt.column - 1)}${written}`]);
}

/** A scalar's own characters where there are some; else all that stands after the colon. */
function replaceValue(text: string, entry: SourceEntry, value: Plain): Splice {
  const { value: old } = entry;
  if (isNothing(old))
    return { start: afterColon(text, entry), end: afterColon(text, entry), text: ` ${asFlow(value)}` };
  if (!isWithin(entry, old)) throw cannotEdit(entry, `${entry.key} is an alias`);
  if (old.kind === "scalar") return { start: old.start, end: old.end, text: asFlow(value) };
  return { start: afterColon(text, entry), end: endOf(entry), text: ` ${asFlow(value)}` };
}

function nodeEntryOf(file: string, root: SourceMap, name: string): SourceEntry {
  const nodes = root.get("nodes");
  const entry = nodes?.kind === "map" ? nodes.entries.get(name) : undefined;
  if (entry !== undefined) return entry;
  throw new KcoreError({ code: "ROSTER_NODE_UNKNOWN", message: `${file} has no node “${name}”`, at: root.at });
}

function hostKeySplices(text: string, entry: SourceEntry, keys: readonly string[]): Splice[] {
  const { value: node } = entry;
  const value = asFlow([...keys]);
  if (isNothing(node))
    return [{ start: afterColon(text, entry), end: afterColon(text, entry), text: ` { hostKeys: ${value} }` }];
  if (node.kind !== "map" || !isWithin(entry, node)) throw cannotEdit(entry, "the node is an alias");
  const old = node.entries.get("hostKeys");
  if (old !== undefined) return replaceKeys(text, old, keys);
  if (node.flow) return [intoFlow(node, "hostKeys", [...keys])];
  const last = [...node.entries.values()].at(-1);
  if (last === undefined) throw cannotEdit(entry, "the node is empty");
  return [insertLines(text, endOf(last), [`${" ".repeat(last.keyAt.column - 1)}hostKeys: ${value}`])];
}

function replaceKeys(text: string, { value: old, ...entry }: SourceEntry, keys: readonly string[]): Splice[] {
  const value = asFlow([...keys]);
  if (isNothing(old)) return [{ start: entry.end + 1, end: entry.end + 1, text: ` ${value}` }];
  if (old.start < entry.start) throw cannotEdit(old, "hostKeys is an alias");
  const isBlock = old.kind === "list" && text[old.start] !== "[";
  if (!isBlock) return [{ start: old.start, end: old.end, text: value }];
  // One line for each key: those that stay the same are not touched.
  if (old.items.length === keys.length)
    return old.items.map((item, index) => ({ start: item.start, end: item.end, text: asFlow(keys[index] ?? "") }));
  const indent = " ".repeat(old.at.column - 1);
  const lines = keys.map((key) => `- ${asFlow(key)}`).join(`${lineBreakOf(text)}${indent}`);
  return [{ start: old.start, end: old.items.at(-1)?.end ?? old.end, text: lines || "[]" }];
}

export function intoFlow(map: SourceMap, key: string, value: Plain): Splice {
  const last = [...map.entries.values()].at(-1);
  const text = `${asKey(key)}: ${asFlow(value)}`;
  if (last !== undefined) return { start: endOf(last), end: endOf(last), text: `, ${text}` };
  return { start: map.start + 1, end: map.start + 1, text: ` ${text} ` };
}

/** `nodes: {}` becomes lines: all nodes on one line would soon be unreadable, and so would their diffs. */
function intoEmptyFlow(text: string, root: SourceMap, map: SourceMap, lines: readonly string[]): Splice | undefined {
  const after = /^[ \t]*(?:\r?\n|$)/.exec(text.slice(map.end));
  if (root.flow || map.entries.size > 0 || after === null || text.slice(map.start, map.end).includes("\n"))
    return undefined;
  const start = map.start - (text[map.start - 1] === " " ? 1 : 0);
  const lineBreak = lineBreakOf(text);
  return { start, end: map.end, text: lines.map((line) => lineBreak + line).join("") };
}

function nodeLines(indent: string, name: string, fields: Readonly<Record<string, Plain>>): string[] {
  const lines = Object.entries(fields).map(([key, value]) => `${indent}  ${asKey(key)}: ${asFlow(value)}`);
  return [`${indent}${asKey(name)}:`, ...lines];
}

function append(text: string, root: SourceMap, lines: readonly string[]): Splice {
  if (root.flow && root.entries.size > 0) throw cannotEdit(root, "the file is written as { … }");
  const lineBreak = lineBreakOf(text);
  const before = text === "" || text.endsWith("\n") ? "" : lineBreak;
  return { start: text.length, end: text.length, text: before + lines.map((line) => line + lineBreak).join("") };
}

/** New lines after the line in which `offset` stands, whose comment stays with it. */
export function insertLines(text: string, offset: number, lines: readonly string[]): Splice {
  const lineBreak = lineBreakOf(text);
  const isAtLineStart = offset > 0 && text[offset - 1] === "\n";
  const newline = isAtLineStart ? offset - 1 : text.indexOf("\n", offset);
  if (newline === -1)
    return { start: text.length, end: text.length, text: lines.map((line) => lineBreak + line).join("") };
  return { start: newline + 1, end: newline + 1, text: lines.map((line) => line + lineBreak).join("") };
}

function lineBreakOf(text: string): string {
  return text.includes("\r\n") ? "\r\n" : "\n";
}

/** Where the deepest last value of an entry ends. */
export function endOf(entry: SourceEntry): number {
  const { value } = entry;
  if (!isWithin(entry, value) || isNothing(value)) return endOfLineValue(entry);
  if (value.kind === "scalar" || (value.kind === "map" && value.flow)) return value.end;
  if (value.kind === "list") {
    if (entry.file.text[value.start] === "[") return value.end;
    return value.items.at(-1)?.end ?? value.end;
  }
  const last = [...value.entries.values()].at(-1);
  return last === undefined ? value.end : endOf(last);
}

/** An alias or nothing: its text ends before a comment, a comma, a bracket or the line's end. */
function endOfLineValue({ file, end }: SourceEntry): number {
  const [found = ""] = /^\s*:?[ \t]*(\*[^\s,{}[\]]+)?/.exec(file.text.slice(end)) ?? [];
  return end + found.trimEnd().length;
}

export function afterColon(text: string, { end }: SourceEntry): number {
  return text.indexOf(":", end) + 1;
}

/** Whether a value was written here, and not at an anchor above. */
export function isWithin({ start }: SourceEntry, value: SourceNode): boolean {
  return value.start > start;
}

export function splice(text: string, ...splices: readonly Splice[]): string {
  return [...splices]
    .sort((a, b) => b.start - a.start)
    .reduce((edited, { start, end, text: by }) => edited.slice(0, start) + by + edited.slice(end), text);
}

function parse(file: string, text: string): SourceMap {
  const root = parseSource(file, text, { maxBytes: MAX_ROSTER_BYTES });
  if (root.kind === "map") return root;
  if (isNothing(root)) return new SourceMap(root.file, 0, 0, new Map());
  throw new KcoreError({
    code: "YAML_TYPE",
    message: "a roster is a map of defaults, groups, nodes and jumps",
    at: root.at,
  });
}

/** Refuses an edit whose result does not mean exactly the wanted value. */
function verified(file: string, edited: string, wanted: unknown): string {
  const root = parse(file, edited);
  if (isDeepStrictEqual(normal(plainOf(root)), normal(wanted))) return edited;
  throw cannotEdit(root, "the place is written in a way that cannot be edited line by line");
}

/** Without prototypes, in any order of keys. */
export function normal(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(normal);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, item]) => [key, normal(item)]),
  );
}

export function cannotEdit(where: { readonly at: KcoreError["problems"][number]["at"] }, why: string): KcoreError {
  return new KcoreError({
    code: "ROSTER_EDIT",
    message: `the roster cannot be edited here: ${why}`,
    at: where.at,
    hint: "edit the file by hand",
  });
}
