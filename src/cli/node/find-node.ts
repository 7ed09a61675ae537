import { ApiRefusal, type ApiClient } from "#api/client.ts";
import type { NodeView } from "#api/schemas.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { KcoreError } from "#errors/problem.ts";
import { cleanLine } from "#engine/events/clean.ts";
import { openCluster } from "../cluster/open-cluster.ts";
import type { ClusterFlags } from "../options.ts";

const nodeRefusals = ["NODE_UNKNOWN", "NODE_AMBIGUOUS"] as const;

/**
 * The node that a word names: its whole id, else its host name or the beginning of its id (four characters at least).
 * @throws KcoreError NODE_UNKNOWN; NODE_AMBIGUOUS with the candidates
 */
export async function findNode(client: Pick<ApiClient, "call">, word: string): Promise<NodeView> {
  try {
    return await client.call("findNode", {}, { id: word });
  } catch (error) {
    const code = nodeRefusals.find((name) => error instanceof ApiRefusal && error.reason === name);
    if (!(error instanceof ApiRefusal) || !code) throw error;
    // The word was wrong; the controller that reports it is not at fault.
    const { message, hint = "", detail } = error.refusal;
    throw new KcoreError({ code, message, hint, ...omitUndefined({ detail }) }, { cause: error });
  }
}

/** The nodes that words name, each once. @throws KcoreError with the problems of all words */
export async function findNodes(
  client: Pick<ApiClient, "call">,
  words: readonly string[],
): Promise<readonly NodeView[]> {
  const results = await Promise.allSettled(words.map((word) => findNode(client, word)));
  const problems = results.flatMap((result) => {
    if (result.status === "fulfilled") return [];
    if (result.reason instanceof KcoreError && !(result.reason instanceof ApiRefusal)) return result.reason.problems;
    throw result.reason;
  });
  if (problems.length > 0) throw new KcoreError(problems);
  const found = results.flatMap((result) =>
    result.status === "fulfilled" ? [[result.value.id, result.value] as const] : [],
  );
  return [...new Map(found).values()];
}

/**
 * Changes the nodes that words name, one after the other, and prints a line for each. Finds all nodes before it changes
 * one.
 * @throws KcoreError NODE_UNKNOWN, NODE_AMBIGUOUS, and the errors of the change
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

/** A node as results name it: `n1 (6f1c2a52-…)`, without control characters (S-4). */
export function nodeTitle({ hostname, id }: Pick<NodeView, "hostname" | "id">): string {
  const name = cleanLine(hostname);
  return name === "" || name === id ? id : `${name} (${id})`;
}
