import type { ApiClient } from "#api/client.ts";
import type { NodeView } from "#api/schemas.ts";
import { cleanLine } from "#engine/events/clean.ts";
import { openCluster } from "../cluster/open-cluster.ts";
import type { ClusterFlags } from "../options.ts";
import { findNodes } from "./find-node.ts";

/**
 * Changes the nodes that words name, one after the other, and prints a line for each. All words are understood before
 * anything is changed.
 * @throws KcoreError NODE_UNKNOWN, NODE_AMBIGUOUS, and what the change throws
 */
export async function changeNodes(
  words: readonly string[],
  flags: ClusterFlags,
  change: (client: ApiClient, node: NodeView) => Promise<string>,
): Promise<void> {
  const { ask } = await openCluster(flags);
  for (const node of await ask((client) => findNodes(client, words)))
    process.stdout.write(`${await ask((client) => change(client, node))}\n`);
}

/** A node as results name it: `n1 (6f1c2a52-…)`, without what a name could do to a terminal (S-4). */
export function nameOf({ hostname, id }: Pick<NodeView, "hostname" | "id">): string {
  const name = cleanLine(hostname);
  return name === "" || name === id ? id : `${name} (${id})`;
}
