import type { SourceNode } from "./node.ts";
import { parseSource } from "./parse.ts";
import { MAX_SOURCE_BYTES, readBytes, type ReadOptions } from "./regular-file.ts";

/** Reads and parses a file; see {@link parseSource}. */
export function readSource(path: string, options: ReadOptions = {}): SourceNode {
  const { name = path, maxBytes = MAX_SOURCE_BYTES } = options;
  return parseSource(name, readBytes(path, options), { maxBytes });
}
