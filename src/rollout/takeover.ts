import type { Owner } from "./records.ts";

/** A controller's word for an epoch, given once: who may own the rollout in it. */
export interface Grant {
  readonly epoch: number;
  /** Who grants. */
  readonly controller: string;
  readonly claimant: string;
}

/** The epoch that a takeover claims: one that nobody owned, claimed or granted, as far as it is known. */
export function nextEpoch(owner: Owner, others: Iterable<Pick<Grant, "epoch">>): number {
  return 1 + Math.max(owner.epoch, ...Array.from(others, ({ epoch }) => epoch));
}

/** Whether a controller may grant an epoch: it is not over, and this controller granted neither it nor a later one. */
export function mayGrant(owner: Owner, grants: Iterable<Grant>, self: string, epoch: number): boolean {
  if (epoch <= owner.epoch) return false;
  for (const grant of grants) if (grant.controller === self && grant.epoch >= epoch) return false;
  return true;
}

/** Whether a majority of the registered controllers granted an epoch to a claimant. Two majorities meet, so nobody else has one. */
export function isGranted(
  grants: Iterable<Grant>,
  controllers: ReadonlySet<string>,
  { claimant, epoch }: Pick<Grant, "claimant" | "epoch">,
): boolean {
  const givers = new Set<string>();
  for (const grant of grants)
    if (grant.epoch === epoch && grant.claimant === claimant && controllers.has(grant.controller))
      givers.add(grant.controller);
  return givers.size * 2 > controllers.size;
}
