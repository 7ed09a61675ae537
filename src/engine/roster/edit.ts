import { isDeepStrictEqual } from "node:util";
import { KcoreError } from "#errors/problem.ts";
import { childOf, itemName } from "#engine/encrypted-values/places.ts";
import { plainOf, type SourceEntry, type SourceMap, type SourceNode, type SourceScalar } from "#engine/yaml/node.ts";
import { parseSource } from "#engine/yaml/parse.ts";
import { MAX_ROSTER_BYTES } from "#engine/yaml/regular-file.ts";
import { isNothing, type RosterText } from "./roster-files.ts";
import { asFlow, asKey, type Plain } from "./flow-yaml.ts";

/** A change of the text: `text` replaces the characters from `start` to `end`. */
export interface Splice {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** A value to write at these keys. */
interface RosterChange {
  readonly keys: readonly string[];
  readonly value: Plain;
  /** A new map gets one line for each key, if the map around it is in block style. */
  readonly inLines?: boolean;
}

type Fields = Readonly<Record<string, Plain>>;

/**
 * The text with one more node at the end of `nodes:`; every other line stays as it is, byte for byte.
 * @throws KcoreError ROSTER_DUPLICATE, ROSTER_EDIT; errors of parsing
 */
export function addNode(source: RosterText, name: string, fields: Fields): string {
  const root = read(source);
  const known = nodeEntryOf(root, name);
  if (known === undefined) return edit(source, root, { keys: ["nodes", name], value: fields, inLines: true });
  throw new KcoreError({
    code: "ROSTER_DUPLICATE",
    message: `“${name}” is in the roster already`,
    at: known.keyAt,
  });
}

/**
 * The text with these fields of one node set and its other fields unchanged; every other line stays.
 * @throws KcoreError ROSTER_NODE_UNKNOWN, ROSTER_EDIT; errors of parsing
 */
export function setNodeFields({ file, text }: RosterText, name: string, fields: Fields): string {
  return Object.entries(fields).reduce((before, [key, value]) => {
    const root = read({ file, text: before });
    if (nodeEntryOf(root, name)) return edit({ file, text: before }, root, { keys: ["nodes", name, key], value });
    throw new KcoreError({ code: "ROSTER_NODE_UNKNOWN", message: `${file} has no node “${name}”`, at: root.at });
  }, text);
}

/** The entry of a node; undefined if the file has no such node. */
export function nodeEntryOf(root: SourceNode, name: string): SourceEntry | undefined {
  const nodes = root.kind === "map" ? root.get("nodes") : undefined;
  return nodes?.kind === "map" ? nodes.entries.get(name) : undefined;
}

/**
 * The text with this value at these keys, which may be new; every other character stays as it is.
 * @throws KcoreError ROSTER_EDIT where the place cannot be edited by splicing (no YAML printer keeps comments, alignment and quotes);
 * errors of parsing
 */
export function setValue(source: RosterText, keys: readonly string[], value: string): string {
  return edit(source, read(source), { keys, value });
}

function edit(source: RosterText, root: SourceNode, change: RosterChange): string {
  return verified(source, root, splicesFor(source.text, root, change), withValue(plainOf(root), root, change));
}

function splicesFor(text: string, root: SourceNode, change: RosterChange): readonly Splice[] {
  if (isNothing(root)) return [atEnd(text, linesWith("", change))];
  let node: SourceNode = root;
  let entry: SourceEntry | undefined;
  for (const [index, key] of change.keys.entries()) {
    const child = childOf(node, key);
    if (child === undefined)
      return [missingSplice(text, { root, node, entry }, { ...change, keys: change.keys.slice(index) })];
    entry = node.kind === "map" ? node.entries.get(key) : undefined;
    if (entry !== undefined && isNothing(child))
      return [emptySplice(text, { entry, child }, { ...change, keys: change.keys.slice(index + 1) })];
    if (entry !== undefined && !isWithin(entry, child)) throw cannotEdit(entry, `${key} is an alias`);
    node = child;
  }
  return replacingSplices(text, { node, entry }, change);
}

/** Adds a value on a line of its own if the map is in block style, so that a diff shows the change alone. */
function missingSplice(
  text: string,
  {
    root,
    node,
    entry,
  }: { readonly root: SourceNode; readonly node: SourceNode; readonly entry?: SourceEntry | undefined },
  change: RosterChange,
): Splice {
  const [key = "", ...rest] = change.keys;
  const value = nested(rest, change.value);
  if (node.kind !== "map") throw cannotEdit(node, `there is no “${key}” in it, nor can there be`);
  const last = [...node.entries.values()].at(-1);
  if (node.file.name.endsWith(".json")) return intoFlow(node, `${JSON.stringify(key)}: ${JSON.stringify(value)}`, "");
  // `nodes: {}` becomes a block map: all nodes on one line, and their diffs, would be unreadable.
  if (last === undefined && change.inLines && entry && isAloneInLine(text, node) && root.kind === "map" && !root.flow)
    return {
      start: afterColon(text, entry),
      end: node.end,
      text: newLines(text, linesWith(indentBelow(entry), change)),
    };
  if (node.flow || last === undefined) return intoFlow(node, `${asKey(key)}: ${asFlow(value)}`, " ");
  return insertLines(text, endOf(last), linesWith(" ".repeat(last.keyAt.column - 1), change));
}

/** Whether nothing but blanks follows `{}` on its line. */
function isAloneInLine(text: string, map: SourceMap): boolean {
  return /^[ \t]*(?:\r?\n|$)/.test(text.slice(map.end)) && !text.slice(map.start, map.end).includes("\n");
}

function emptySplice(
  text: string,
  { entry, child }: { readonly entry: SourceEntry; readonly child: SourceNode },
  change: RosterChange,
): Splice {
  const value = asFlow(nested(change.keys, change.value));
  if (child.end > child.start) return { start: child.start, end: child.end, text: value };
  const colon = afterColon(text, entry);
  if (change.keys.length === 0) return { start: colon, end: colon, text: ` ${value}` };
  return insertLines(text, colon, linesWith(indentBelow(entry), change));
}

/** Replaces a scalar or flow collection in place, a block list by items, and any other value after its colon. */
function replacingSplices(
  text: string,
  { node, entry }: { readonly node: SourceNode; readonly entry: SourceEntry | undefined },
  { keys, value }: RosterChange,
): readonly Splice[] {
  if (node.kind === "scalar") return [scalarSplice(node, value)];
  if (entry === undefined || typeof value === "string")
    throw cannotEdit(node, `${keys.join(".")} holds more than one value`);
  if (/[[{]/.test(text[node.start] ?? "")) return [{ start: node.start, end: node.end, text: asFlow(value) }];
  if (node.kind === "map" || !Array.isArray(value))
    return [{ start: afterColon(text, entry), end: endOf(entry), text: ` ${asFlow(value)}` }];
  // One line for each item, so that a diff shows only the items that changed.
  const items = (value as readonly Plain[]).map(asFlow);
  if (node.items.length === items.length)
    return node.items.map(({ start, end }, index) => ({ start, end, text: items[index] ?? "" }));
  const lines = items.map((item) => `- ${item}`).join(`${lineBreakOf(text)}${" ".repeat(node.at.column - 1)}`);
  return [{ start: node.start, end: node.items.at(-1)?.end ?? node.end, text: lines || "[]" }];
}

function linesWith(indent: string, { keys: [key = "", ...rest], ...change }: RosterChange): readonly string[] {
  const start = `${indent}${asKey(key)}:`;
  if (rest.length > 0) return [start, ...linesWith(`${indent}  `, { ...change, keys: rest })];
  if (!change.inLines) return [`${start} ${asFlow(change.value)}`];
  const fields = Object.entries(change.value as Fields);
  return [start, ...fields.map(([name, value]) => `${indent}  ${asKey(name)}: ${asFlow(value)}`)];
}

function nested(keys: readonly string[], value: Plain): Plain {
  return keys.reduceRight<Plain>((inner, key) => ({ [key]: inner }), value);
}

function withValue(plain: unknown, node: SourceNode | undefined, change: RosterChange): unknown {
  const [key, ...rest] = change.keys;
  if (key === undefined) return change.value;
  const inner = (at: unknown): unknown => withValue(at, childOf(node, key), { ...change, keys: rest });
  if (node?.kind === "list")
    return (plain as unknown[]).map((at, index) => {
      const item = node.items[index];
      return item && itemName(item, index) === key ? inner(at) : at;
    });
  const map = (plain ?? {}) as Record<string, unknown>;
  return { ...map, [key]: inner(map[key]) };
}

/**
 * The text with other values for some of its scalars; every other character stays as it is. `written`: the value as YAML, if the usual form
 * does not fit. @throws KcoreError ROSTER_EDIT
 */
export function replaceScalars(
  source: RosterText,
  root: SourceNode,
  values: ReadonlyMap<SourceScalar, { readonly text: string; readonly written?: string }>,
): string {
  const splices = [...values].map(([node, { text: value, written }]) => scalarSplice(node, value, written));
  const replaced = (node: SourceNode): unknown => {
    if (node.kind === "scalar") return values.get(node)?.text ?? node.value;
    if (node.kind === "list") return node.items.map(replaced);
    return Object.fromEntries([...node.entries.values()].map(({ key, value }) => [key, replaced(value)]));
  };
  return verified(source, root, splices, replaced(root));
}

/** Replaces a scalar; the line break at the end of a block scalar's source stays. */
function scalarSplice({ start, end, source, file }: SourceScalar, value: Plain, written?: string): Splice {
  const lineBreak = /\r?\n$/.exec(source)?.[0] ?? "";
  const text = written ?? (file.name.endsWith(".json") ? JSON.stringify(value) : asFlow(value));
  return { start, end: end - lineBreak.length, text };
}

function intoFlow(map: SourceMap, written: string, blank: string): Splice {
  const last = [...map.entries.values()].at(-1);
  if (last !== undefined) return { start: endOf(last), end: endOf(last), text: `, ${written}` };
  return { start: map.start + 1, end: map.start + 1, text: `${blank}${written}${blank}` };
}

function atEnd(text: string, lines: readonly string[]): Splice {
  const before = text === "" || text.endsWith("\n") ? "" : lineBreakOf(text);
  const written = lines.map((line) => line + lineBreakOf(text)).join("");
  return { start: text.length, end: text.length, text: before + written };
}

/** Inserts lines after the line of `offset`, so that a comment at that line's end stays with it. */
function insertLines(text: string, offset: number, lines: readonly string[]): Splice {
  const isAtLineStart = offset > 0 && text[offset - 1] === "\n";
  const newline = isAtLineStart ? offset - 1 : text.indexOf("\n", offset);
  if (newline === -1) return { start: text.length, end: text.length, text: newLines(text, lines) };
  return { start: newline + 1, end: newline + 1, text: lines.map((line) => line + lineBreakOf(text)).join("") };
}

function newLines(text: string, lines: readonly string[]): string {
  return lines.map((line) => lineBreakOf(text) + line).join("");
}

function lineBreakOf(text: string): string {
  return text.includes("\r\n") ? "\r\n" : "\n";
}

function indentBelow({ keyAt }: SourceEntry): string {
  return " ".repeat(keyAt.column + 1);
}

/** The end of an entry's last and deepest value. */
export function endOf(entry: SourceEntry): number {
  const { value } = entry;
  if (!isWithin(entry, value) || value.end === value.start) return endOfLineValue(entry);
  if (value.kind === "scalar" || /[[{]/.test(entry.file.text[value.start] ?? "")) return value.end;
  if (value.kind === "list") return value.items.at(-1)?.end ?? value.end;
  const last = [...value.entries.values()].at(-1);
  return last === undefined ? value.end : endOf(last);
}

/** The end of an alias or of an empty value: before a comment, a comma, a bracket or the line's end. */
function endOfLineValue({ file, end }: SourceEntry): number {
  const [found = ""] = /^\s*:?[ \t]*(\*[^\s,{}[\]]+)?/.exec(file.text.slice(end)) ?? [];
  return end + found.trimEnd().length;
}

/** The place behind the colon of an entry's key. */
export function afterColon(text: string, { end }: SourceEntry): number {
  return text.indexOf(":", end) + 1;
}

/** Whether a value was written here, and not at an anchor above. */
export function isWithin({ start }: SourceEntry, value: SourceNode): boolean {
  return value.start > start;
}

/** The parsed text of a roster file. */
export function read({ file, text }: RosterText): SourceNode {
  return parseSource(file, text, { maxBytes: MAX_ROSTER_BYTES });
}

/** The edited text; refuses an edit whose result does not mean exactly the wanted value. */
export function verified(
  { file, text }: RosterText,
  root: SourceNode,
  splices: readonly Splice[],
  wanted: unknown,
): string {
  const edited = [...splices]
    .sort((a, b) => b.start - a.start)
    .reduce((whole, { start, end, text: by }) => whole.slice(0, start) + by + whole.slice(end), text);
  const found = plainOf(read({ file, text: edited })) ?? {};
  // isDeepStrictEqual compares prototypes, too; structuredClone makes them equal.
  if (!isDeepStrictEqual(structuredClone(found), structuredClone(wanted))) throw notByLines(root);
  return edited;
}

/** The refusal of an edit by lines. */
export function notByLines(root: SourceNode): KcoreError {
  return cannotEdit(root, "the place is written in a way that cannot be edited line by line");
}

/** The refusal of an edit. */
export function cannotEdit({ at }: Pick<SourceNode, "at">, why: string): KcoreError {
  return new KcoreError({
    code: "ROSTER_EDIT",
    message: `the roster cannot be edited here: ${why}`,
    at,
    hint: "edit the file by hand",
  });
}
