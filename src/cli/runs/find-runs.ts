import { listRunIds, runFolder } from "#engine/run/run-folder.ts";
import { glanceAtRun, type RunGlance } from "./glance.ts";
import { failedStates, type RunFilter } from "./run-filter.ts";

/** The runs that are meant, the newest last; records that cannot be read are passed over. */
export async function findRuns(project: string, filter: RunFilter): Promise<readonly RunGlance[]> {
  const found: RunGlance[] = [];
  // From the newest on, so that a filter looks at no more than it must.
  for (const id of (await listRunIds(project)).reverse()) {
    if (found.length >= filter.limit) break;
    const glance = await glanceAtRun(runFolder(project, id)).catch(() => undefined);
    if (glance && isMeant(glance, filter)) found.push(glance);
  }
  return found.reverse();
}

function isMeant({ state: is, nodes, header }: RunGlance, { state, failed, node, since }: RunFilter): boolean {
  return (
    (!state || state.includes(is)) &&
    (!failed || failedStates.includes(is)) &&
    (!node || node.some((name) => nodes.includes(name))) &&
    header.created >= (since ?? 0)
  );
}
