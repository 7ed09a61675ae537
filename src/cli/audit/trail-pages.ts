import type { ReplyOf } from "#api/methods.ts";
import type { PlacedLine } from "#audit/chain.ts";
import { mostBytes } from "#audit/open-trail.ts";
import { pageBytes } from "#audit/trail-files.ts";
import { KcoreError } from "#errors/problem.ts";

/**
 * The lines of a controller's trail, page by page; `ask` gives the page from an entry on.
 * @throws KcoreError API_UNTRUSTED for pages that do not go on, or are more than a trail can be: the controller may be hostile (S11)
 */
export async function* trailPages(
  controller: string,
  ask: (from: number) => Promise<ReplyOf<"listAudit">>,
): AsyncGenerator<PlacedLine> {
  let bytes = 0;
  for (let from: number | undefined = 1; from !== undefined;) {
    const { lines, next }: ReplyOf<"listAudit"> = await ask(from);
    const size = lines.reduce((sum, { text }) => sum + text.length, 0);
    bytes += size;
    // Only a full page is followed by another one.
    const isOnward = next === undefined || (next >= from + lines.length && size > pageBytes);
    if (!isOnward || bytes > mostBytes)
      throw new KcoreError({
        code: "API_UNTRUSTED",
        message: `the audit trail of ${controller} has no end`,
        hint: "no controller of kcore answers so: look at the machine",
      });
    yield* lines;
    from = next;
  }
}
