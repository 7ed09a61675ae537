import { keepNodeFile, readNodeFile, readNodeFiles } from "#engine/facts/node-files.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import type { NodeRevision, RunRequest } from "./run-types.ts";

/** Shipped orchestrations that look at nodes, or whose work is done once. */
const jobs: ReadonlySet<string> = new Set(
  "validate verify_node node_work remove_node replace_node update update_rollback".split(" "),
);

/** Whether a run of this work gives a node its desired state, which later dry runs can be compared with. */
export function isDesiredState(what: RunRequest["what"]): boolean {
  return what.kind === "state" || (what.kind === "orchestration" && !jobs.has(what.name));
}

/** Whether a run of this request leaves steps out that its orchestration or states have. */
export function leavesOut({ part: { only, from, tags } = {} }: RunRequest): boolean {
  return [only, from, tags].some((selection) => selection !== undefined);
}

/** Keeps a node's revision in the project's `.kcore/applied`, one file for each node, which outlives the records of runs. */
export function keepRevision(project: string, node: string, kept: NodeRevision): void {
  keepNodeFile(project, "applied", { node, ...kept });
}

/** The revision that a node got last; undefined if no run recorded here applied anything to the node. */
export function revisionOf(project: string, { name, id }: Pick<NodeEntry, "name" | "id">): NodeRevision | undefined {
  const kept = readNodeFile(project, "applied", name);
  return kept?.["id"] === id ? (kept as unknown as NodeRevision) : undefined;
}

/** The revisions of all nodes as words for tables, by node id: `be955e76c2f1`, with `+dirty` or `+part`. */
export function revisionWords(project: string): ReadonlyMap<string, string> {
  const kept = readNodeFiles(project, "applied") as unknown as readonly NodeRevision[];
  const wordOf = ({ revision = "", dirty = false, isWhole }: NodeRevision): string =>
    revision && `${revision.slice(0, 12)}${dirty ? "+dirty" : ""}${isWhole ? "" : "+part"}`;
  return new Map(kept.map((one) => [one.id, wordOf(one)]));
}
