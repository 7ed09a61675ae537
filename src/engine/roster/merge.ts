import { SourceEntry, SourceMap, type SourceNode } from "#engine/yaml/node.ts";

/** Maps that are one value: half of one reference and half of another would be neither. */
const ATOMIC = new Set(["sudo.password", "identityPassphrase"]);

/** `over` on top of `base`: maps merge, everything else replaces. Each value keeps the place where it was written. */
export function mergeNodes(base: SourceNode | undefined, over: SourceNode, path = ""): SourceNode {
  if (base?.kind !== "map" || over.kind !== "map" || ATOMIC.has(path)) return over;
  const entries = new Map(base.entries);
  for (const [key, entry] of over.entries) {
    const inner = path === "" ? key : `${path}.${key}`;
    const value = mergeNodes(base.get(key), entry.value, inner);
    entries.set(key, new SourceEntry(entry.file, entry.start, entry.end, key, value));
  }
  return new SourceMap(over.file, over.start, over.end, entries, over.flow);
}
