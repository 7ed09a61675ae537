import type { SourcePosition } from "#errors/problem.ts";
import type { SourceFile } from "./file.ts";

/** How a scalar was written; decides how a place inside its value maps to the file. */
export type ScalarStyle = "plain" | "single" | "double" | "block";

/** The parts of every node: its file and its range of characters. */
abstract class Located {
  readonly file: SourceFile;
  /** Offset of the first character in the file. */
  readonly start: number;
  /** Offset after the last character, without comments and line breaks behind it; a block scalar has its last line break. */
  readonly end: number;

  constructor(file: SourceFile, start: number, end: number) {
    this.file = file;
    this.start = start;
    this.end = end;
  }

  get at(): SourcePosition {
    return this.file.position(this.start, this.end - this.start);
  }
}

/** One value that is not a list or map. */
export class SourceScalar extends Located {
  readonly kind = "scalar";
  readonly value: string | number | boolean | null;
  readonly style: ScalarStyle;

  constructor(
    file: SourceFile,
    start: number,
    end: number,
    value: string | number | boolean | null,
    style: ScalarStyle = "plain",
  ) {
    super(file, start, end);
    this.value = value;
    this.style = style;
  }

  /** As it was written, quotes included. */
  get source(): string {
    return this.file.text.slice(this.start, this.end);
  }
}

export class SourceList extends Located {
  readonly kind = "list";
  readonly items: readonly SourceNode[];

  constructor(file: SourceFile, start: number, end: number, items: readonly SourceNode[]) {
    super(file, start, end);
    this.items = items;
  }
}

export class SourceEntry extends Located {
  readonly key: string;
  readonly value: SourceNode;

  constructor(file: SourceFile, start: number, end: number, key: string, value: SourceNode) {
    super(file, start, end);
    this.key = key;
    this.value = value;
  }

  get keyAt(): SourcePosition {
    return this.at;
  }
}

export class SourceMap extends Located {
  readonly kind = "map";
  readonly entries: ReadonlyMap<string, SourceEntry>;
  /** Written as `{ … }`. */
  readonly flow: boolean;

  constructor(
    file: SourceFile,
    start: number,
    end: number,
    entries: ReadonlyMap<string, SourceEntry>,
    flow: boolean = false,
  ) {
    super(file, start, end);
    this.entries = entries;
    this.flow = flow;
  }

  get(key: string): SourceNode | undefined {
    return this.entries.get(key)?.value;
  }
}

export type SourceNode = SourceScalar | SourceList | SourceMap;

/** The values alone; maps have no prototype, so a key such as `toString` is only ever a key. */
export function plainOf(node: SourceNode): unknown {
  switch (node.kind) {
    case "scalar":
      return node.value;
    case "list":
      return node.items.map(plainOf);
    case "map":
      return mapValues(node, plainOf);
  }
}

/** The values of a map, each made by `value`; without a prototype. */
export function mapValues<T>(node: SourceMap, value: (node: SourceNode, key: string) => T): Record<string, T> {
  const plain = Object.create(null) as Record<string, T>;
  for (const { key, value: child } of node.entries.values()) plain[key] = value(child, key);
  return plain;
}

/** The node at a path of keys and indexes; undefined if there is none. */
export function nodeAt(node: SourceNode, path: readonly PropertyKey[]): SourceNode | undefined {
  let found: SourceNode | undefined = node;
  for (const part of path) {
    if (found?.kind === "map") found = found.get(String(part));
    else if (found?.kind === "list") found = found.items[Number(part)];
    else return undefined;
  }
  return found;
}

/** The kind of a plain value, for messages; never the value itself, except true and false. */
export function describeValue(value: unknown): string {
  if (value === null || value === undefined) return "nothing";
  if (Array.isArray(value)) return "a list";
  switch (typeof value) {
    case "string":
      return "a text";
    case "number":
      return "a number";
    case "boolean":
      return `${value}`;
    default:
      return /^(Secret|Sealed)$/.test(value.constructor?.name ?? "") ? "a secret" : "a map";
  }
}

/** A condition as the operator wrote it; “when” for a condition that is no scalar. */
export function conditionText(node: SourceNode): string {
  return node.kind === "scalar" ? String(node.value) : "“when”";
}
