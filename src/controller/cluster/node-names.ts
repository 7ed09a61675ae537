import { suggestHint } from "#errors/suggest.ts";
import { gatherNodes, isShown, nameOf, partsOf, sinceOf, type NodeParts } from "./node-view.ts";
import type { Records } from "./records.ts";
import { Refused } from "./refused.ts";

/** Which nodes go by which name. It follows the registers, so that no question about one node looks at all of them. */
export interface NodeNames {
  /** The id that a word names: a whole id, else a host name or the beginning of an id. @throws Refused NODE_UNKNOWN, NODE_AMBIGUOUS */
  readonly find: (word: string) => string;
  readonly of: (id: string) => string;
  /** The nodes that go by a name, in whatever case: the one that keeps it first (docs/replication.md). */
  readonly sharing: (name: string) => readonly string[];
  /** All names that several nodes go by, in lower case. */
  readonly shared: () => ReadonlyMap<string, readonly string[]>;
  readonly stop: () => void;
}

/** So few characters of an id are more likely a mistake than meant. */
const shortestPrefix = 4;

export function watchNodeNames(records: Records): NodeNames {
  const nodes = new Map<string, { readonly name: string; readonly since: string }>();
  const byName = new Map<string, Set<string>>();
  const forget = (id: string): void => {
    const name = nodes.get(id)?.name.toLowerCase() ?? "";
    nodes.delete(id);
    byName.get(name)?.delete(id);
    if (byName.get(name)?.size === 0) byName.delete(name);
  };
  const note = (id: string, parts: NodeParts | undefined): void => {
    forget(id);
    if (!parts || !isShown(parts)) return;
    const name = nameOf(parts);
    nodes.set(id, { name, since: sinceOf(parts) });
    byName.set(name.toLowerCase(), (byName.get(name.toLowerCase()) ?? new Set()).add(id));
  };
  for (const [id, parts] of gatherNodes(records)) note(id, parts);
  const stop = records.replica.watch((changed) => {
    const ids = changed.flatMap(
      (key) => /^node\/([^/]+)\/(?:reg|expected|approval|removed|reject\/.+)$/.exec(key)?.[1] ?? [],
    );
    for (const id of new Set(ids)) note(id, partsOf(records, id));
  });

  const rank = (id: string): string => `${nodes.get(id)?.since ?? ""} ${id}`;
  const inOrder = (ids: Iterable<string>): readonly string[] =>
    [...ids].toSorted((a, b) => (rank(a) < rank(b) ? -1 : 1));
  const of = (id: string): string => nodes.get(id)?.name ?? id;
  return {
    of,
    sharing: (name) => inOrder(byName.get(name.toLowerCase()) ?? []),
    shared: () => new Map([...byName].flatMap(([name, ids]) => (ids.size > 1 ? [[name, inOrder(ids)]] : []))),
    find(word) {
      if (nodes.has(word)) return word;
      // A name does not go before the beginning of an id: nodes choose their names, and one may call itself like another's id.
      const named = [...(byName.get(word.toLowerCase()) ?? [])].filter((id) => of(id) === word);
      const begun = word.length < shortestPrefix ? [] : [...nodes.keys()].filter((id) => id.startsWith(word));
      const [only, ...more] = new Set([...named, ...begun]);
      if (only === undefined)
        throw unknown(
          word,
          [...nodes].flatMap(([id, { name }]) => [name, id]),
        );
      if (more.length > 0)
        throw ambiguous(
          word,
          [only, ...more].map((id) => `${id}  ${of(id)}`),
        );
      return only;
    },
    stop,
  };
}

function unknown(word: string, names: readonly string[]): Refused {
  const hint = suggestHint(word, names, "kcore get nodes");
  return new Refused(404, "NODE_UNKNOWN", `the cluster knows no node “${word}”`, hint);
}

function ambiguous(word: string, candidates: readonly string[]): Refused {
  const message = `“${word}” fits ${candidates.length} nodes`;
  return new Refused(409, "NODE_AMBIGUOUS", message, "give the id of the one that is meant", candidates.join("\n"));
}
