import { isDeepStrictEqual } from "node:util";
import type { Outcome } from "#engine/events/event.ts";
import { listRunIds, readHeader, runFolder, type RunFolder, type RunHeader } from "#engine/run/run-folder.ts";
import type { DryRunResult } from "#tui/questions.ts";
import { scanRecord } from "../records/known-run.ts";

/** The most earlier runs in which to look for a dry run of the same request. */
const maxHeaders = 100;

/** The result of the newest readable dry run of the same request; undefined without one, and for a dry run. Never rejects. */
export async function lastDryRun(folder: RunFolder): Promise<DryRunResult | undefined> {
  const { project, id } = folder;
  try {
    const own = await readHeader(folder);
    if (own.request.dryRun) return undefined;
    for (const earlier of (await listRunIds(project))
      .filter((one) => one < id)
      .slice(-maxHeaders)
      .reverse()) {
      const at = runFolder(project, earlier);
      const header = await readHeader(at).catch(() => undefined);
      if (!header || !isDryRunOf(header, own)) continue;
      const counts = await countOutcomes(at);
      if (!counts) continue;
      const isSame = header.revision === own.revision && !header.dirty && !own.dirty;
      return { at: header.created, ...counts, isSame };
    }
  } catch {
    // The result only adds to a question.
  }
  return undefined;
}

function isDryRunOf({ request }: RunHeader, own: RunHeader): boolean {
  const kindOf = ({ what, params, part }: RunHeader["request"]): unknown => [what, params, part];
  return request.dryRun && request.on === own.request.on && isDeepStrictEqual(kindOf(request), kindOf(own.request));
}

/** Counts the outcomes of a dry run; undefined unless it came to its end. */
async function countOutcomes(folder: RunFolder): Promise<Omit<DryRunResult, "at" | "isSame"> | undefined> {
  const counts: Partial<Record<Outcome, number>> = {};
  let isOver = false;
  for await (const event of scanRecord(folder, /"type":"(step|action|run)\.finished"/)) {
    if (event.type === "run.finished") isOver = event.outcome !== "interrupted";
    if (event.type === "step.finished" || event.type === "action.finished")
      counts[event.outcome] = (counts[event.outcome] ?? 0) + 1;
  }
  if (!isOver) return undefined;
  return { wouldChange: counts["would-change"] ?? 0, unknown: counts.unknown ?? 0, failed: counts.failed ?? 0 };
}
