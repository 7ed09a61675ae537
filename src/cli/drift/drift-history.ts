import { parseEntry } from "#audit/chain.ts";
import { readTrail } from "#audit/trail-files.ts";
import type { RunRequest } from "#engine/orchestrate/run-types.ts";
import { listRunIds, readHeader, runFolder } from "#engine/run/run-folder.ts";
import { trailFolder, type DriftFound } from "#engine/run/run-trail.ts";
import { findProject } from "../project/find-project.ts";
import { readRun } from "../records/known-run.ts";
import { printRows } from "../terminal/format-result.ts";
import type { DriftFlags } from "./find-drift.ts";
import { awayOf, driftsOf, namesOf } from "./look-for-drift.ts";

type FoundBefore = Pick<DriftFound, "command" | "revision" | "differs" | "away" | "reasons"> & { readonly at: number };

/** `kcore drift --since`: prints the differences that looks, passes and recorded dry runs found, without a connection. */
export async function printHistory(since: number, flags: Pick<DriftFlags, "project" | "output">): Promise<void> {
  const project = findProject(flags.project);
  const found: FoundBefore[] = [];
  for await (const { text } of readTrail(trailFolder(project))) {
    const entry = parseEntry(text) as (FoundBefore & { readonly type?: unknown }) | undefined;
    if (entry && entry.at >= since && ["drift.found", "reconcile.pass"].includes(String(entry.type))) found.push(entry);
  }
  for (const id of await listRunIds(project)) {
    const header = await readHeader(runFolder(project, id)).catch(() => undefined);
    if (!header?.request.dryRun || !isWork(header.request.what) || header.created < since) continue;
    const drifts = driftsOf((await readRun(project, id)).model);
    const { command } = header.request;
    const revision = header.revision ?? "";
    found.push({ at: header.created, command, revision, differs: namesOf(drifts), away: awayOf(drifts) });
  }
  const inOrder = found
    .toSorted((a, b) => a.at - b.at)
    .map(({ at, command, revision = "", differs, away = [], reasons = [] }) => ({
      at: new Date(at).toISOString(),
      command,
      revision,
      differs,
      away,
      reasons,
    }));
  const rows = inOrder.flatMap(({ at, command, revision, differs, away, reasons }) => {
    const said = [
      ...Object.entries(differs).map(([node, steps]) => [node, steps.join(", ")] as const),
      ...away.map((node) => [node, "not compared"] as const),
      ...reasons.map((reason) => ["-", reason.split("\n", 1).join("")] as const),
    ];
    const lines = said.length === 0 ? [["-", "no step differs"] as const] : said;
    return lines.map(([node, text]) => [at, revision.slice(0, 12), node, text, command]);
  });
  printRows(inOrder, flags.output, ["TIME", "REVISION", "NODE", "DIFFERS", "FOUND BY"], rows, "nothing was looked at");
}

/** Whether a dry run compares nodes with work. `kcore validate` and `kcore doctor` look at nodes by an orchestration, too. */
function isWork(what: RunRequest["what"]): boolean {
  return what.kind === "state" || (what.kind === "orchestration" && what.name !== "validate");
}
