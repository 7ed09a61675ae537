import type { OwnershipStatement } from "#rollout/spec.ts";

/** An owner's statement as the bastion signs it. */
export function ownershipOf({
  cluster = "test",
  name,
  owner,
  epoch,
  signedAt = "2026-01-01T00:00:00.000Z",
}: Pick<OwnershipStatement, "name" | "owner" | "epoch"> & Partial<OwnershipStatement>): OwnershipStatement {
  return { kind: "ClusterUpdateOwner", cluster, name, owner, epoch, signedAt };
}
