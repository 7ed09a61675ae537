import type { NodeView } from "#api/schemas.ts";
import { KcoreError } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";

type Named = Pick<NodeView, "id" | "hostname">;

/** So few characters of an id are more likely a mistake than meant. */
const shortestPrefix = 4;

/**
 * The node that a word names: its whole id, else its host name or the beginning of its id (four characters at least).
 * @throws KcoreError NODE_UNKNOWN; NODE_AMBIGUOUS with the candidates
 */
export function findNode<Node extends Named>(nodes: readonly Node[], word: string): Node {
  const byId = nodes.find(({ id }) => id === word);
  if (byId) return byId;
  // A name does not go before the beginning of an id: nodes choose their names, and one may call itself like another's id.
  const isMeant = ({ id, hostname }: Named): boolean =>
    hostname === word || (word.length >= shortestPrefix && id.startsWith(word));
  const found = nodes.filter(isMeant);
  const [only, second] = found;
  if (only && !second) return only;
  if (only)
    throw new KcoreError({
      code: "NODE_AMBIGUOUS",
      message: `“${word}” fits ${found.length} nodes`,
      detail: found.map(({ id, hostname }) => `${id}  ${hostname}`).join("\n"),
      hint: "give the id of the one that is meant",
    });
  const names = nodes.flatMap(({ id, hostname }) => [hostname, id]);
  throw new KcoreError({
    code: "NODE_UNKNOWN",
    message: `the cluster knows no node “${word}”`,
    hint: suggestHint(word, names, "kcore get nodes") ?? "",
  });
}

/** The nodes that words name, each once. @throws KcoreError with the problems of all words */
export function findNodes<Node extends Named>(nodes: readonly Node[], words: readonly string[]): readonly Node[] {
  const found = new Set<Node>();
  const problems = words.flatMap((word) => {
    try {
      found.add(findNode(nodes, word));
      return [];
    } catch (error) {
      if (error instanceof KcoreError) return error.problems;
      throw error;
    }
  });
  if (problems.length > 0) throw new KcoreError(problems);
  return [...found];
}
