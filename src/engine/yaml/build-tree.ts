import {
  isAlias,
  isMap,
  isPair,
  isScalar,
  isSeq,
  type Node,
  type Pair,
  type YAMLMap,
  type YAMLSeq,
  type Scalar,
} from "yaml";
import type { SourceFile } from "./file.ts";
import { SourceEntry, SourceList, SourceMap, SourceScalar, type ScalarStyle, type SourceNode } from "./node.ts";
import { oddBlankProblem, unquotedProblem } from "./likely-mistake.ts";
import type { Problems } from "./problems.ts";

/** The most aliases of a file; aliases inside an alias's value count again. An alias bomb needs many more. */
const MAX_ALIASES = 50;
const FORBIDDEN_KEYS = new Set(["__proto__", "constructor", "prototype"]);

interface AnchoredNode {
  readonly node: SourceNode;
  /** The number of aliases inside the node. */
  readonly aliases: number;
}

/** Turns the YAML library's nodes into source nodes; faults are added to `problems`. */
export function buildTree(file: SourceFile, root: Node, problems: Problems): SourceNode {
  return new TreeBuilder(file, problems).node(root);
}

class TreeBuilder {
  readonly #file: SourceFile;
  readonly #problems: Problems;
  readonly #anchors = new Map<string, AnchoredNode>();
  #aliases = 0;

  constructor(file: SourceFile, problems: Problems) {
    this.#file = file;
    this.#problems = problems;
  }

  node(node: Node): SourceNode {
    if (isAlias(node)) return this.#alias(node.source, node.range?.[0] ?? 0);
    const before = this.#aliases;
    const built = isScalar(node) ? this.#scalar(node) : isSeq(node) ? this.#list(node) : this.#map(node as YAMLMap);
    const { anchor } = node as { anchor?: string };
    if (anchor !== undefined) this.#anchors.set(anchor, { node: built, aliases: this.#aliases - before });
    return built;
  }

  #alias(name: string, offset: number): SourceNode {
    const target = this.#anchors.get(name);
    if (target === undefined) {
      this.#add(
        "YAML_SYNTAX",
        offset,
        name.length + 1,
        `the alias *${name} names no anchor above it`,
        `write &${name} before what it stands for; quote a text that begins with *`,
      );
      return this.#null(offset);
    }
    this.#aliases += 1 + target.aliases;
    if (this.#aliases <= MAX_ALIASES) return target.node;
    this.#add(
      "YAML_UNSUPPORTED",
      offset,
      name.length + 1,
      `more than ${MAX_ALIASES} aliases in one file`,
      "say what is shared with defaults, groups or parameters",
    );
    return this.#null(offset);
  }

  #list(node: YAMLSeq): SourceNode {
    const [start, end] = rangeOf(node);
    const items = node.items.map((item) => {
      if (isPair(item)) return this.#pairInList(item as Pair<Node, Node | null>, start);
      return item === null ? this.#null(start) : this.node(item as Node);
    });
    return new SourceList(this.#file, start, end, items);
  }

  /** `[a: 1]`: YAML reads a map of one pair. */
  #pairInList(pair: Pair<Node, Node | null>, start: number): SourceNode {
    const entries = new Map<string, SourceEntry>();
    this.#entry(pair, entries);
    const [from, to] = pair.key ? rangeOf(pair.key) : [start, start];
    return new SourceMap(this.#file, from, pair.value ? rangeOf(pair.value)[1] : to, entries, true);
  }

  #map(node: YAMLMap): SourceNode {
    const [start, end] = rangeOf(node);
    const entries = new Map<string, SourceEntry>();
    for (const pair of node.items as Pair<Node, Node | null>[]) {
      if (!isScalar(pair.key) && this.#reportUnquoted(start, pair.key)) break;
      this.#entry(pair, entries);
    }
    return new SourceMap(this.#file, start, end, entries, node.flow === true);
  }

  /** Reports an expression without quotes, which YAML reads as a map in a map; returns whether there is one. */
  #reportUnquoted(mapStart: number, key: Node | null): boolean {
    const found = this.#file.text.startsWith("{{", mapStart) && isMap(key);
    if (found) this.#problems.add(unquotedProblem(this.#file, mapStart));
    return found;
  }

  #entry(pair: Pair<Node, Node | null>, entries: Map<string, SourceEntry>): void {
    const key = this.#key(pair.key);
    if (key === undefined) return;
    const { text, start, end } = key;
    const value = pair.value === null ? this.#null(end) : this.node(pair.value);
    const earlier = entries.get(text);
    if (FORBIDDEN_KEYS.has(text))
      this.#add("YAML_UNSUPPORTED", start, end - start, `“${text}” cannot be a key`, "choose another name");
    else if (text === "<<")
      this.#add(
        "YAML_UNSUPPORTED",
        start,
        2,
        "merge keys (<<) are not YAML 1.2",
        "say what is shared with defaults, groups or parameters",
      );
    else if (earlier !== undefined)
      this.#add(
        "YAML_KEY_DUPLICATE",
        start,
        end - start,
        `“${text}” stands here twice, first in line ${earlier.keyAt.line}`,
        "remove one of them",
      );
    else entries.set(text, new SourceEntry(this.#file, start, end, text, value));
  }

  #key(key: Node | null): { text: string; start: number; end: number } | undefined {
    const [start, end] = key === null ? [0, 0] : rangeOf(key);
    if (isScalar(key)) {
      const odd = styleOf(key) === "plain" ? this.#file.text.slice(start, end).search(/[^\S \t\r\n]/) : -1;
      if (odd >= 0) this.#problems.add(oddBlankProblem(this.#file, start + odd));
      if (typeof key.value === "string") return { text: key.value, start, end };
      // A number or boolean as a key is the text it was written as: 9090, 010, true.
      if (key.value !== null && key.source !== undefined) return { text: key.source, start, end };
    }
    this.#add("YAML_UNSUPPORTED", start, end - start, "a key must be a text", "quote it");
    return undefined;
  }

  #scalar(node: Scalar): SourceNode {
    const [start, end] = rangeOf(node);
    const { value } = node;
    const style = styleOf(node);
    const written = this.#file.text.slice(start, end);
    if (typeof value === "number") return this.#number(start, end, value, written);
    if (value === null || typeof value === "string" || typeof value === "boolean")
      return new SourceScalar(this.#file, start, end, value, style);
    this.#add("YAML_UNSUPPORTED", start, end - start, `${written} is not a plain value`, "remove its tag");
    return this.#null(start);
  }

  #number(start: number, end: number, value: number, written: string): SourceNode {
    const hint = `write "${written}" if it is a text`;
    if (/^[-+]?0\d/.test(written))
      this.#add(
        "YAML_LEADING_ZERO",
        start,
        end - start,
        `${written} has a leading zero, and YAML would read ${value}`,
        `quote it: "${written}"`,
      );
    else if (!Number.isFinite(value))
      this.#add("YAML_UNSUPPORTED", start, end - start, `${written} is not a number that can be used here`, hint);
    else if (Number.isInteger(value) && !Number.isSafeInteger(value))
      this.#add("YAML_UNSUPPORTED", start, end - start, `${written} is too large to be kept exactly`, hint);
    return new SourceScalar(this.#file, start, end, value);
  }

  #null(offset: number): SourceNode {
    return new SourceScalar(this.#file, offset, offset, null);
  }

  #add(
    code: "YAML_SYNTAX" | "YAML_UNSUPPORTED" | "YAML_KEY_DUPLICATE" | "YAML_LEADING_ZERO",
    start: number,
    length: number,
    message: string,
    hint?: string,
  ): void {
    const at = this.#file.position(start, Math.max(1, length));
    this.#problems.add({ code, message, at, hint });
  }
}

function rangeOf(node: Node): [number, number] {
  const [start = 0, end = start] = node.range ?? [];
  return [start, end];
}

function styleOf(node: Scalar): ScalarStyle {
  if (node.type === "QUOTE_DOUBLE") return "double";
  if (node.type === "QUOTE_SINGLE") return "single";
  return node.type === "BLOCK_FOLDED" || node.type === "BLOCK_LITERAL" ? "block" : "plain";
}
