import { listRunIds, runFolder, type RunFolder } from "#engine/run/run-folder.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import type { FleetRun } from "#tui/ink/fleet/snapshot.ts";
import { scanRecord } from "../records/known-run.ts";
import { summarizeRun } from "../records/run-summary.ts";

/** The number of newest runs in which the node is looked for. */
const maxSearched = 200;
/** The maximum number of runs of a node that a view shows. */
const maxShown = 5;

/** The newest runs of a project on a node, each with the node's last milestone and the node's own outcome. */
export async function runsOfNode(project: string, node: string): Promise<readonly FleetRun[]> {
  const found: FleetRun[] = [];
  for (const id of (await listRunIds(project)).reverse().slice(0, maxSearched)) {
    if (found.length === maxShown) break;
    const folder = runFolder(project, id);
    const summary = await summarizeRun(folder).catch(() => undefined);
    if (!summary?.nodes.includes(node)) continue;
    const { header, state, isOver } = summary;
    const { milestone, outcome } = await readNode(folder, node);
    found.push({
      id,
      // The state of the run may come from another node.
      state: isOver ? (outcome ?? state) : state,
      at: new Date(header.created).toISOString(),
      command: header.request.command,
      ...omitUndefined({ milestone }),
    });
  }
  return found;
}

/** The last milestone that the node reached, and its own outcome. */
async function readNode(
  folder: RunFolder,
  node: string,
): Promise<{ readonly milestone?: string | undefined; readonly outcome?: string | undefined }> {
  let milestone: string | undefined;
  let outcome: string | undefined;
  for await (const event of scanRecord(folder, /"type":"node\.(?:milestone|finished)"/)) {
    if (event.type === "node.milestone" && event.node === node) milestone = event.milestone;
    if (event.type === "node.finished" && event.node === node) outcome = event.outcome;
  }
  return { milestone, outcome };
}
