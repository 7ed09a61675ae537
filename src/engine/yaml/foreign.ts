import { Composer, isAlias, isMap, isScalar, isSeq, type Document, type Node } from "yaml";
import { KcoreError } from "#errors/problem.ts";
import { SourceFile } from "./file.ts";
import { SourceEntry, SourceList, SourceMap, SourceScalar, type SourceNode } from "./node.ts";
import { decodeSource, tokenize } from "./scan.ts";
import { MAX_ROSTER_BYTES } from "./regular-file.ts";

/** The most values of a file; the values of aliases count again. An alias bomb has many more. */
const maxValues = 500_000;

/**
 * Reads YAML as PyYAML and thus Salt do: YAML 1.1, so that `yes` is true, with merge keys; tags are ignored. The last of two
 * equal keys counts. JSON is read as well. Up to 8 MiB, 64 levels deep.
 * @throws KcoreError YAML_SYNTAX; the errors of parseSource for encoding, size and depth
 */
export function parseForeign(file: string, text: string | Uint8Array): SourceNode {
  // JSON may be indented by tabs, YAML may not: replace each tab by one blank, which keeps the positions.
  const decoded = decodeSource(file, text, MAX_ROSTER_BYTES);
  const source = new SourceFile(file, /^\s*[[{]/.test(decoded) ? decoded.replaceAll("\t", " ") : decoded);
  const composer = new Composer({ version: "1.1", merge: false, uniqueKeys: false, prettyErrors: false });
  const [document] = [...composer.compose(tokenize(source), true, source.text.length)] as Document.Parsed[];
  const problems = (document?.errors ?? []).slice(0, 20).map(({ message, pos: [start] }) => ({
    code: "YAML_SYNTAX" as const,
    message: `not valid YAML: ${message}`,
    at: source.position(Math.min(start, Math.max(0, source.text.length - 1))),
    // The line may hold a password.
    conceal: true as const,
  }));
  if (problems.length > 0) throw new KcoreError(problems);
  return document?.contents ? new ForeignBuilder(source).node(document.contents) : new SourceScalar(source, 0, 0, null);
}

class ForeignBuilder {
  readonly #file: SourceFile;
  readonly #anchors = new Map<string, SourceNode>();
  readonly #sizes = new Map<SourceNode, number>();
  #values = 0;

  constructor(file: SourceFile) {
    this.#file = file;
  }

  node(node: Node): SourceNode {
    if (isAlias(node)) return this.#alias(node.source, node.range?.[0] ?? 0);
    const before = this.#values++;
    const built = this.#build(node);
    const { anchor } = node as { anchor?: string };
    if (anchor !== undefined) {
      this.#anchors.set(anchor, built);
      this.#sizes.set(built, this.#values - before);
    }
    return built;
  }

  #build(node: Node): SourceNode {
    const [start = 0, end = start] = node.range ?? [];
    if (isSeq(node))
      return new SourceList(
        this.#file,
        start,
        end,
        node.items.map((item) => this.#value(item, start)),
      );
    if (isMap(node)) return this.#map(node.items, start, end, node.flow === true);
    return new SourceScalar(this.#file, start, end, scalarOf(node, this.#file.text.slice(start, end)));
  }

  #value(node: unknown, offset: number): SourceNode {
    return node === null || node === undefined
      ? new SourceScalar(this.#file, offset, offset, null)
      : this.node(node as Node);
  }

  #map(
    items: readonly { readonly key: unknown; readonly value: unknown }[],
    start: number,
    end: number,
    flow: boolean,
  ): SourceMap {
    const entries = new Map<string, SourceEntry>();
    const merged: SourceNode[] = [];
    for (const { key, value } of items) {
      if (!isScalar(key)) continue;
      const [from = start, to = from] = key.range ?? [];
      const text = typeof key.value === "string" ? key.value : (key.source ?? String(key.value));
      const built = this.#value(value, to);
      if (text === "<<") merged.push(...(built.kind === "list" ? built.items : [built]));
      else entries.set(text, new SourceEntry(this.#file, from, to, text, built));
    }
    // Of merged maps the first one wins, and the map's own keys win over all of them.
    for (const one of merged)
      for (const [text, entry] of one.kind === "map" ? one.entries : [])
        if (!entries.has(text)) entries.set(text, entry);
    return new SourceMap(this.#file, start, end, entries, flow);
  }

  #alias(name: string, offset: number): SourceNode {
    const target = this.#anchors.get(name);
    this.#values += target === undefined ? 1 : (this.#sizes.get(target) ?? 1);
    if (target !== undefined && this.#values <= maxValues) return target;
    throw new KcoreError({
      code: "YAML_SYNTAX",
      message: target === undefined ? "an alias names no anchor above it" : "aliases stand for too many values",
      at: this.#file.position(offset, name.length + 1),
      conceal: true,
    });
  }
}

/** The scalar's value. Dates, bytes, and numbers that a roster would write differently, stay texts. */
function scalarOf(node: Node, written: string): string | number | boolean | null {
  const value: unknown = isScalar(node) ? node.value : null;
  if (value === null || value === undefined) return null;
  // In YAML 1.1 “y” and “n” are booleans; PyYAML reads them as texts.
  if (typeof value === "boolean") return /^[yn]$/i.test(written) ? written : value;
  if (typeof value === "string") return value;
  return typeof value === "number" && Number.isFinite(value) && String(value) === written ? value : written;
}
