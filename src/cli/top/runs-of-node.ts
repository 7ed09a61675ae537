import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { parseEvent } from "#engine/events/recording.ts";
import { listRunIds, runFolder, type RunFolder } from "#engine/run/run-folder.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import type { FleetRun } from "#tui/ink/fleet/snapshot.ts";
import { summarizeRun } from "../runs/run-summary.ts";

/** The number of newest runs to look at, and to show. */
const looked = 200;
const shown = 5;

/** The newest runs of a project on a node, each with the node's last milestone and the node's own outcome. */
export async function runsOfNode(project: string, node: string): Promise<readonly FleetRun[]> {
  const found: FleetRun[] = [];
  for (const id of (await listRunIds(project)).reverse().slice(0, looked)) {
    if (found.length === shown) break;
    const folder = runFolder(project, id);
    const summary = await summarizeRun(folder).catch(() => undefined);
    if (!summary?.nodes.includes(node)) continue;
    const { header, state, isOver } = summary;
    const { milestone, outcome } = await readNode(folder, node);
    found.push({
      id,
      // The run's state may be another node's failure.
      state: isOver ? (outcome ?? state) : state,
      at: new Date(header.created).toISOString(),
      command: header.request.command,
      ...omitUndefined({ milestone }),
    });
  }
  return found;
}

/** The last milestone that the node reached, and its own outcome; read line by line because a record may be large. */
async function readNode(
  { events }: RunFolder,
  node: string,
): Promise<{ readonly milestone?: string | undefined; readonly outcome?: string | undefined }> {
  let milestone: string | undefined;
  let outcome: string | undefined;
  const file = createReadStream(events);
  // A run that has just been made has no record yet.
  file.on("error", () => undefined);
  try {
    for await (const line of createInterface({ input: file })) {
      if (!line.includes('"node.milestone"') && !line.includes('"node.finished"')) continue;
      const event = parseEvent(line);
      if (event?.type === "node.milestone" && event.node === node) milestone = event.milestone;
      if (event?.type === "node.finished" && event.node === node) outcome = event.outcome;
    }
  } catch {
    // What could be read of it counts.
  }
  return { milestone, outcome };
}
