import { isDeepStrictEqual } from "node:util";
import { itemName } from "#engine/encrypted-values/places.ts";
import { plainOf, type SourceEntry, type SourceMap, type SourceNode, type SourceScalar } from "#engine/yaml/node.ts";
import { parseSource } from "#engine/yaml/parse.ts";
import { MAX_ROSTER_BYTES } from "#engine/yaml/scan.ts";
import { afterColon, cannotEdit, endOf, insertLines, intoFlow, isWithin, normal, splice, type Splice } from "./edit.ts";
import { asFlow, asKey, type Plain } from "./flow-yaml.ts";
import { isNothing, type RosterText } from "./roster-files.ts";

/**
 * The keys that a path such as `nodes.n1.vars.token` means in a file: at each level the longest existing key, since keys
 * may hold dots. A missing part is split at its dots.
 */
export function keysOfPath(root: SourceNode, path: string): readonly string[] {
  const keys: string[] = [];
  let node: SourceNode | undefined = root;
  for (let rest = path; rest !== "";) {
    const fits = childrenOf(node)
      .map(([name]) => name)
      .filter((name) => rest === name || rest.startsWith(`${name}.`));
    const key: string = fits.sort((a, b) => b.length - a.length)[0] ?? rest.split(".", 1)[0] ?? rest;
    keys.push(key);
    node = childrenOf(node).find(([name]) => name === key)?.[1];
    rest = rest.slice(key.length + 1);
  }
  return keys;
}

function childrenOf(node: SourceNode | undefined): readonly (readonly [string, SourceNode])[] {
  if (node?.kind === "map") return [...node.entries.values()].map(({ key, value }) => [key, value] as const);
  return node?.kind === "list" ? node.items.map((item, index) => [itemName(item, index), item] as const) : [];
}

/** The value at these keys of a file. */
export function valueAt(root: SourceNode, keys: readonly string[]): SourceNode | undefined {
  return keys.reduce<SourceNode | undefined>((node, key) => childrenOf(node).find(([name]) => name === key)?.[1], root);
}

/**
 * The text with this value at these keys, which may be new; every other character stays as it is.
 * @throws KcoreError ROSTER_EDIT where the place cannot be edited by splicing (no YAML printer keeps comments, alignment and quotes)
 */
export function setValue({ file, text }: RosterText, keys: readonly string[], value: string): string {
  const root = parseSource(file, text, { maxBytes: MAX_ROSTER_BYTES });
  const edited = splice(text, valueSplice(text, root, keys, value));
  const after = parseSource(file, edited, { maxBytes: MAX_ROSTER_BYTES });
  const wanted = withValue(plainOf(root), root, keys, value);
  if (!isDeepStrictEqual(normal(plainOf(after)), normal(wanted))) throw notByLines(root);
  return edited;
}

function valueSplice(text: string, root: SourceNode, keys: readonly string[], value: string): Splice {
  if (isNothing(root)) {
    const before = text === "" || text.endsWith("\n") ? "" : "\n";
    return { start: text.length, end: text.length, text: `${before}${linesOf("", keys, value).join("\n")}\n` };
  }
  let node: SourceNode = root;
  for (const [index, key] of keys.entries()) {
    const child = childrenOf(node).find(([name]) => name === key)?.[1];
    if (child === undefined) return missingSplice(text, node, keys.slice(index), value);
    const entry = node.kind === "map" ? node.entries.get(key) : undefined;
    if (entry !== undefined && isNothing(child))
      return emptySplice(text, { entry, child }, keys.slice(index + 1), value);
    if (entry !== undefined && !isWithin(entry, child)) throw cannotEdit(entry, `${key} is an alias`);
    node = child;
  }
  if (node.kind === "scalar") return scalarSplice(node, value);
  throw cannotEdit(node, `${keys.join(".")} holds more than one value`);
}

/** A line of its own for a value, wherever the map has lines: a diff then shows the change alone. */
function missingSplice(text: string, node: SourceNode, keys: readonly string[], value: string): Splice {
  const [key = "", ...rest] = keys;
  const last = node.kind === "map" ? [...node.entries.values()].at(-1) : undefined;
  if (node.kind !== "map") throw cannotEdit(node, `there is no “${key}” in it, nor can there be`);
  if (node.file.name.endsWith(".json"))
    return intoJson(node, last, `${JSON.stringify(key)}: ${JSON.stringify(nested(rest, value))}`);
  if (node.flow || last === undefined) return intoFlow(node, key, nested(rest, value));
  return insertLines(text, endOf(last), linesOf(" ".repeat(last.keyAt.column - 1), keys, value));
}

function intoJson(map: SourceMap, last: SourceEntry | undefined, written: string): Splice {
  if (last === undefined) return { start: map.start + 1, end: map.start + 1, text: written };
  return { start: last.value.end, end: last.value.end, text: `, ${written}` };
}

function emptySplice(
  text: string,
  { entry, child }: { readonly entry: SourceEntry; readonly child: SourceNode },
  keys: readonly string[],
  value: string,
): Splice {
  if (child.end > child.start) return { start: child.start, end: child.end, text: asFlow(nested(keys, value)) };
  const colon = afterColon(text, entry);
  if (keys.length === 0) return { start: colon, end: colon, text: ` ${asFlow(value)}` };
  return insertLines(text, colon, linesOf(" ".repeat(entry.keyAt.column + 1), keys, value));
}

function linesOf(indent: string, keys: readonly string[], value: string): readonly string[] {
  const written = (index: number): string => (index === keys.length - 1 ? ` ${asFlow(value)}` : "");
  return keys.map((key, index) => `${indent}${"  ".repeat(index)}${asKey(key)}:${written(index)}`);
}

function nested(keys: readonly string[], value: string): Plain {
  return keys.reduceRight<Plain>((inner, key) => ({ [key]: inner }), value);
}

function withValue(plain: unknown, node: SourceNode | undefined, keys: readonly string[], value: string): unknown {
  const [key, ...rest] = keys;
  if (key === undefined) return value;
  if (node?.kind === "list")
    return node.items.map((item, index) =>
      itemName(item, index) === key
        ? withValue((plain as unknown[])[index], item, rest, value)
        : (plain as unknown[])[index],
    );
  const map = (plain ?? {}) as Record<string, unknown>;
  return { ...map, [key]: withValue(map[key], node?.kind === "map" ? node.get(key) : undefined, rest, value) };
}

/** The text with other values for some of its scalars; every other character stays as it is. @throws KcoreError ROSTER_EDIT */
export function replaceScalars(
  { file, text }: RosterText,
  root: SourceNode,
  values: ReadonlyMap<SourceScalar, { readonly text: string; readonly written?: string }>,
): string {
  const splices = [...values].map(([node, { text: value, written }]) => scalarSplice(node, value, written));
  const edited = splice(text, ...splices);
  const after = parseSource(file, edited, { maxBytes: MAX_ROSTER_BYTES });
  const replaced = (node: SourceNode): unknown => {
    if (node.kind === "scalar") return values.get(node)?.text ?? node.value;
    if (node.kind === "list") return node.items.map(replaced);
    return Object.fromEntries([...node.entries.values()].map(({ key, value }) => [key, replaced(value)]));
  };
  if (!isDeepStrictEqual(normal(plainOf(after)), normal(replaced(root)))) throw notByLines(root);
  return edited;
}

/** A block scalar's text ends with its line break, which stays. */
function scalarSplice({ start, end, source, file }: SourceScalar, value: string, written?: string): Splice {
  const lineBreak = /\r?\n$/.exec(source)?.[0] ?? "";
  const text = written ?? (file.name.endsWith(".json") ? JSON.stringify(value) : asFlow(value));
  return { start, end: end - lineBreak.length, text };
}

function notByLines(root: SourceNode): ReturnType<typeof cannotEdit> {
  return cannotEdit(root, "the place is written in a way that cannot be edited line by line");
}

/** The text without the line of this key at the top of a file; every other line stays as it is. @throws KcoreError ROSTER_EDIT */
export function removeEntry({ file, text }: RosterText, key: string): string {
  const root = parseSource(file, text);
  const entry = root.kind === "map" ? root.entries.get(key) : undefined;
  if (root.kind !== "map" || root.flow || entry?.value.kind !== "scalar") throw notByLines(root);
  const { start, text: line } = entry.file.lineAt(entry.start);
  const lineBreak = /^\r?\n/.exec(text.slice(start + line.length))?.[0] ?? "";
  const edited = splice(text, { start, end: start + line.length + lineBreak.length, text: "" });
  const { [key]: _, ...others } = plainOf(root) as Record<string, unknown>;
  const after = plainOf(parseSource(file, edited)) ?? {};
  if (!isDeepStrictEqual(normal(after), normal(others))) throw notByLines(root);
  return edited;
}
