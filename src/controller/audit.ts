import type { Fields } from "#audit/chain.ts";
import { openTrail } from "#audit/open-trail.ts";
import { readPage, type TrailPage } from "#audit/trail-files.ts";
import { describeError, type Log } from "#api/log.ts";

export type Audit = Awaited<ReturnType<typeof openAudit>>;

/**
 * The trail of the changes that callers made through this controller, each entry chained to the one before it (S-27, ADR 0513).
 * A controller whose trail cannot be opened serves all the same, and says so. Its log has the requests, and damage to
 * the trail must not stop the cluster.
 */
export async function openAudit(folder: string, { clock, log }: { readonly clock: () => number; readonly log: Log }) {
  /** Entries from this number on. */
  const page = (from: number): Promise<TrailPage> => readPage(folder, from);
  try {
    const trail = await openTrail({ folder, clock, onTrouble: (text) => log.warn(text) });
    return { record: (fields: Fields): void => trail.record(fields), page, close: () => trail.close() };
  } catch (error) {
    log.error("the audit trail cannot be opened; the log alone has what is asked", describeError(error));
    return { record: (_fields: Fields): void => undefined, page, close: () => Promise.resolve() };
  }
}
