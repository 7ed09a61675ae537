import type { Bundle } from "#rollout/spec.ts";
import type { Verify } from "./read-signed.ts";
import { isSettled } from "./owner-loop.ts";
import type { UpdateIndex } from "./update-records.ts";

/** Whether nodes may still ask for a bundle: of an update that has ended none does, and controllers' disks would fill with what was. */
export function isBundleNeeded(index: Pick<UpdateIndex, "all">, sha256: string): boolean {
  return [...index.all()].some((update) => update.statement.bundle?.sha256 === sha256 && !isSettled(update));
}

/** What this controller should have: another one may have written anything, so the bastion's word is checked. */
export function wantedBundles({
  index,
  verify,
}: {
  readonly index: Pick<UpdateIndex, "all">;
  readonly verify: Verify;
}): readonly Bundle[] {
  return [...index.all()].flatMap((update) => {
    const { head, statement } = update;
    if (!statement.bundle || isSettled(update)) return [];
    try {
      verify(head.value.signed, Date.parse(statement.signedAt));
      return [statement.bundle];
    } catch {
      return [];
    }
  });
}
