import type { EntryFields } from "#audit/chain.ts";
import { openTrail } from "#audit/open-trail.ts";
import { readPage, type TrailPage } from "#audit/trail-files.ts";
import { describeError, type Log } from "#api/log.ts";

export type Audit = Awaited<ReturnType<typeof openAudit>>;

/**
 * Opens the audit trail: the changes that callers made through this controller, each entry chained to the one before (S-27, ADR 0513).
 * If the trail cannot be opened, the controller logs that and serves without it: damage to the trail must not stop the cluster,
 * and the log still has the requests.
 */
export async function openAudit(folder: string, { clock, log }: { readonly clock: () => number; readonly log: Log }) {
  /** A page of entries, from this number on. */
  const page = (from: number): Promise<TrailPage> => readPage(folder, from);
  try {
    const trail = await openTrail({ folder, clock, onTrouble: (text) => log.warn(text) });
    return { record: (fields: EntryFields): void => trail.record(fields), page, close: () => trail.close() };
  } catch (error) {
    log.error("the audit trail cannot be opened; the log alone has what is asked", describeError(error));
    return { record: (_fields: EntryFields): void => undefined, page, close: () => Promise.resolve() };
  }
}
