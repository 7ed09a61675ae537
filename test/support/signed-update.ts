import { signStatement } from "#pki/statement.ts";
import { UpdateSpec, type Bundle, type SignedStatement, type UpdateStatement } from "#rollout/spec.ts";
import type { z } from "zod";
import type { TestCluster } from "./cluster.ts";
import { ownershipOf } from "./ownership.ts";

/** The bastion's signed statement for an update of that name. */
export function signUpdate(
  { authority }: Pick<TestCluster, "authority">,
  name: string,
  { spec, bundle }: { readonly spec: z.input<typeof UpdateSpec>; readonly bundle?: Bundle },
): SignedStatement {
  const statement: UpdateStatement = {
    kind: "ClusterUpdate",
    cluster: authority.cluster,
    name,
    spec: UpdateSpec.parse(spec),
    ...(bundle && { bundle }),
    signedAt: new Date().toISOString(),
  };
  return signStatement(JSON.stringify(statement), authority);
}

/** The bastion's signed owner for an update of that name. */
export function signOwner(
  { authority }: Pick<TestCluster, "authority">,
  name: string,
  { owner = "c1", epoch = 1 }: { readonly owner?: string; readonly epoch?: number } = {},
): SignedStatement {
  const said = ownershipOf({ cluster: authority.cluster, name, owner, epoch, signedAt: new Date().toISOString() });
  return signStatement(JSON.stringify(said), authority);
}
