import { keepNodeFile, readNodeFile } from "#engine/facts/node-files.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import type { LookMemory } from "#engine/session/session.ts";

/** Most looks that are kept for a node; the newest ones stay. */
const mostLooks = 200;

/** The looks that found nodes in order, in the project's `.kcore/looks`, one file for each node. A new node with a former node's name has none. */
export function lookMemories(project: string): (node: NodeEntry) => LookMemory {
  return ({ name, id }) => {
    const kept = readNodeFile(project, "looks", name);
    const known = new Set(kept?.["id"] === id && Array.isArray(kept["looks"]) ? (kept["looks"] as string[]) : []);
    return {
      has: (hash) => known.has(hash),
      all: () => [...known],
      add: (hashes) => {
        if (hashes.every((hash) => known.has(hash))) return;
        for (const hash of hashes) known.add(hash);
        keepNodeFile(project, "looks", { node: name, id, looks: [...known].slice(-mostLooks) });
      },
    };
  };
}
