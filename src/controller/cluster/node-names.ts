import { suggestHint } from "#errors/suggest.ts";
import { KeyIndex } from "#crdt/key-index.ts";
import {
  gatherNodes,
  isShown,
  hostnameOf,
  partsOf,
  sinceOf,
  admissionOf,
  type NodeParts,
  type NodeAdmission,
} from "./node-view.ts";
import type { Records } from "./records.ts";
import { Refused } from "./refused.ts";

/** An index of the nodes' names that follows the registers, so that no lookup reads every node. */
export type NodeNames = ReturnType<typeof watchNodeNames>;

/** The minimum number of characters that may abbreviate an id: fewer are more likely a mistake. */
const shortestPrefix = 4;

export function watchNodeNames(records: Records) {
  const nodes = new Map<string, { readonly name: string; readonly since: string; readonly admission: NodeAdmission }>();
  /** The index's entry, `name/id`: an id has no slash, so a slash in a name does not matter. */
  const entryOf = (id: string, name: string): string => `${name.toLowerCase()}/${id}`;
  const isCurrent = (entry: string): boolean => {
    const id = entry.slice(entry.lastIndexOf("/") + 1);
    const node = nodes.get(id);
    return node !== undefined && entryOf(id, node.name) === entry;
  };
  const order = new KeyIndex(isCurrent);
  const byName = new Map<string, Set<string>>();
  const forget = (id: string): void => {
    const name = nodes.get(id)?.name.toLowerCase() ?? "";
    if (nodes.delete(id)) order.countRemoval();
    byName.get(name)?.delete(id);
    if (byName.get(name)?.size === 0) byName.delete(name);
  };
  const note = (id: string, parts: NodeParts | undefined): void => {
    const name = parts && isShown(parts) ? hostnameOf(parts) : undefined;
    const isRenamed = name !== nodes.get(id)?.name;
    if (isRenamed) forget(id);
    if (!parts || name === undefined) return;
    nodes.set(id, { name, since: sinceOf(parts), admission: admissionOf(parts) });
    if (!isRenamed) return;
    order.add(entryOf(id, name));
    byName.set(name.toLowerCase(), (byName.get(name.toLowerCase()) ?? new Set()).add(id));
  };
  for (const [id, parts] of gatherNodes(records)) note(id, parts);
  const stop = records.replica.watch((changed) => {
    const ids = changed.flatMap(
      (key) => /^node\/([^/]+)\/(?:reg|expected|approval|removed|reject\/.+)$/.exec(key)?.[1] ?? [],
    );
    for (const id of new Set(ids)) note(id, partsOf(records, id));
  });

  const earliestFirst = (ids: Iterable<string>): readonly string[] =>
    Array.from(ids, (id) => ({ id, rank: `${nodes.get(id)?.since ?? ""} ${id}` }))
      .toSorted((a, b) => (a.rank < b.rank ? -1 : 1))
      .map(({ id }) => id);
  const of = (id: string): string => nodes.get(id)?.name ?? id;
  return {
    of,
    /** All nodes that are shown, in the order of their names, as far as they come after the name or `NAME/ID` in `after`. */
    *all(after = ""): Iterable<{ readonly id: string; readonly admission: NodeAdmission }> {
      const start = after.toLowerCase();
      for (const entry of order.withPrefix("", start)) {
        if (entry === start) continue;
        const id = entry.slice(entry.lastIndexOf("/") + 1);
        const node = nodes.get(id);
        if (node && isCurrent(entry)) yield { id, admission: node.admission };
      }
    },
    /** The ids of the nodes with this name, in upper or lower case; the earliest (`sinceOf`) keeps the name and comes first. */
    sharing: (name: string): readonly string[] => earliestFirst(byName.get(name.toLowerCase()) ?? []),
    /** Each name, in lower case, that several nodes share, with their ids as `sharing` orders them. */
    shared: (): ReadonlyMap<string, readonly string[]> =>
      new Map([...byName].flatMap(([name, ids]) => (ids.size > 1 ? [[name, earliestFirst(ids)]] : []))),
    /**
     * The id of the node that a word names: by a complete id, else by a host name or the beginning of an id.
     * @throws Refused NODE_UNKNOWN, NODE_AMBIGUOUS
     */
    find(word: string): string {
      if (nodes.has(word)) return word;
      // A name has no priority over the beginning of an id: a node chooses its name, which may look like another node's id.
      const named = [...(byName.get(word.toLowerCase()) ?? [])].filter((id) => of(id) === word);
      const byPrefix = word.length < shortestPrefix ? [] : [...nodes.keys()].filter((id) => id.startsWith(word));
      const [only, ...more] = new Set([...named, ...byPrefix]);
      if (only === undefined)
        throw unknownNode(
          word,
          [...nodes].flatMap(([id, { name }]) => [name, id]),
        );
      if (more.length > 0)
        throw ambiguousNode(
          word,
          [only, ...more].map((id) => `${id}  ${of(id)}`),
        );
      return only;
    },
    stop,
  };
}

function unknownNode(word: string, names: readonly string[]): Refused {
  const hint = suggestHint(word, names, "kcore get nodes");
  return new Refused(404, "NODE_UNKNOWN", `the cluster knows no node “${word}”`, hint);
}

function ambiguousNode(word: string, candidates: readonly string[]): Refused {
  const message = `“${word}” fits ${candidates.length} nodes`;
  return new Refused(409, "NODE_AMBIGUOUS", message, "give the id of the node", candidates.join("\n"));
}
