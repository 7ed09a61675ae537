import { join } from "node:path";
import { revisionWords } from "#engine/orchestrate/node-revisions.ts";
import { isAlive } from "#engine/run/process-mark.ts";
import { listRunIds, logName, readHeader, runFolder } from "#engine/run/run-folder.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { openQuestion } from "#tui/questions.ts";
import type { FleetLink } from "#tui/ink/fleet/snapshot.ts";
import type { FleetFeed, WebSources } from "#web/routes.ts";
import { RunFeed } from "#web/run-feed.ts";
import type { ListedRun } from "#web/runs-page.ts";
import type { Cluster } from "../cluster/open-cluster.ts";
import { whoAmI } from "../process/who.ts";
import { summarizeRun, type RunSummary, runStates } from "../records/run-summary.ts";
import { readRun } from "../records/known-run.ts";
import { drawRun } from "../records/export.ts";
import { sourceLines } from "../terminal/report-failure.ts";
import { openFleet } from "../top/follow-fleet.ts";

/** The sources of the pages: the project's records and living runs, and the cluster once one exists. */
export function webSources(project: string, cluster: () => Promise<Cluster>): WebSources {
  return {
    runStates,
    listRuns: runLister(project),
    openRun: async (id) => {
      const folder = runFolder(project, id);
      const alive = isAlive((await readHeader(folder)).process);
      const logOf = (node?: string) => join(".kcore", "runs", id, logName(node));
      return RunFeed.open(folder, { by: whoAmI(), isAlive: alive, sourceLine: sourceLines(project), logOf });
    },
    report: async (id) => drawRun("html", await readRun(project, id)),
    // The cluster is opened for each request, as controllers may have been deployed since.
    openFleet: async () => openFeed(await cluster(), project),
  };
}

/** The function that lists runs. It keeps summaries of successful runs, and reads all others again, as those may be resumed. */
function runLister(project: string): WebSources["listRuns"] {
  const ended = new Map<string, ListedRun>();
  const summaryOf = async (id: string): Promise<ListedRun | undefined> => {
    // A run that is being removed or is damaged is left out.
    const run = ended.get(id) ?? (await summarizeRun(runFolder(project, id)).then(listedRun, () => undefined));
    if (run?.state === "done") ended.set(id, run);
    return run;
  };
  return async ({ state, node, before, limit }) => {
    const found: ListedRun[] = [];
    for (const id of (await listRunIds(project)).reverse()) {
      if (found.length >= limit) break;
      if (before !== undefined && id >= before) continue;
      const run = await summaryOf(id);
      if (run && (state === undefined || run.state === state) && (node === undefined || run.nodes.includes(node)))
        found.push(run);
    }
    return found;
  };
}

function listedRun({ folder, header, state, started, since, milliseconds, nodes, question }: RunSummary): ListedRun {
  const { who, request } = header;
  const open = question && openQuestion(question, folder.id);
  return {
    id: folder.id,
    state,
    created: started,
    ...omitUndefined({ question: open }),
    since,
    milliseconds,
    who,
    command: request.command,
    dryRun: request.dryRun,
    nodes,
  };
}

async function openFeed(cluster: Cluster, project: string): Promise<FleetFeed> {
  const stop = new AbortController();
  const { run, ...fleet } = await openFleet(cluster, stop.signal, undefined, () => revisionWords(project));
  let { snapshot } = fleet;
  let link: FleetLink = { state: "live", endpoint: snapshot.asked };
  const calls: (() => void)[] = [];
  const tell = (): void => calls.forEach((call) => call());
  void run({
    show: (next) => {
      snapshot = next;
      tell();
    },
    showLink: (next) => {
      link = next;
      tell();
    },
  });
  return {
    state: () => ({ snapshot, link }),
    onNews: (call) => calls.push(call),
    close: () => stop.abort(),
  };
}
