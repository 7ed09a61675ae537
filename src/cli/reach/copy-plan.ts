import { usageError } from "#errors/problem.ts";

/** A copy between this machine and nodes. */
export interface CopyPlan {
  readonly isFetch: boolean;
  readonly sources: readonly string[];
  /** With `/` at its end: a folder that gets the sources under their names. */
  readonly destination: string;
  readonly on: readonly string[];
}

const nodeName = /\{\{\s*node\.name\s*\}\}/g;

/** The local path for a node. */
export function forNode(path: string, node: string): string {
  return path.replaceAll(nodeName, () => node);
}

/**
 * The plan of `SRC… DST`: either all sources or the destination are a node's, `NODE:PATH`, or `:PATH` of the nodes of `--on`. A colon counts
 * before the first slash, as for scp(1). @throws KcoreError USAGE
 */
export function copyPlan(words: readonly string[], on: readonly string[] = []): CopyPlan {
  const places = words.map(placeOf);
  const last = places.at(-1);
  const sources = places.slice(0, -1);
  if (!last || sources.length === 0)
    throw usageError("kcore cp needs a source and a destination", "kcore cp app.conf n1:/etc/app.conf");
  const isFetch = last.node === undefined;
  const [node, ...others] = new Set(isFetch ? sources.map((source) => source.node) : [last.node]);
  if (node === undefined || others.length > 0 || (!isFetch && sources.some((source) => source.node !== undefined)))
    throw usageError(
      "kcore cp copies from here to nodes, or from nodes to here",
      "NODE:/PATH; or :/PATH with --on TARGET",
    );
  if ((node === "") === (on.length === 0))
    throw usageError(node === "" ? ":/PATH needs --on TARGET" : `--on names the nodes, and so does ${node}:`);
  const destination = sources.length > 1 && !last.path.endsWith("/") ? `${last.path}/` : last.path;
  if (isFetch && node === "" && forNode(destination, "") === destination)
    throw usageError("every node would write the same files here", "DIR/{{node.name}}/ as the destination");
  return { isFetch, sources: sources.map(({ path }) => path), destination, on: node === "" ? on : [node] };
}

/** A path, and its node: undefined for this machine, empty for the nodes of `--on`. */
function placeOf(word: string): { readonly path: string; readonly node?: string | undefined } {
  const [, node, path = word] = /^([^/:]*):(.*)$/s.exec(word) ?? [];
  if (path === "" || /[\n\0]/.test(path)) throw usageError(`${JSON.stringify(word)} names no path`);
  if (node !== undefined && !path.startsWith("/")) throw usageError(`${word}: a path on a node begins with /`);
  if (/[^\w.-]/.test(node ?? ""))
    throw usageError(`${word}: one node stands before the colon`, "--on TARGET and :/PATH");
  return { path, node };
}
