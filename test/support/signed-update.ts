import { signStatement } from "#pki/statement.ts";
import { UpdateSpec, type Bundle, type SignedStatement, type Statement } from "#rollout/spec.ts";
import { uploadBundle } from "#api/bundle-transfer.ts";
import type { z } from "zod";
import { writeRuntime } from "./bundles.ts";
import type { TestCluster } from "./cluster.ts";
import type { TestController } from "./controllers.ts";

/** What the bastion would sign for an update of that name. */
export function signUpdate(
  { authority }: Pick<TestCluster, "authority">,
  name: string,
  { spec, bundle }: { readonly spec: z.input<typeof UpdateSpec>; readonly bundle?: Bundle },
): SignedStatement {
  const statement: Statement = {
    kind: "ClusterUpdate",
    cluster: authority.cluster,
    name,
    spec: UpdateSpec.parse(spec),
    ...(bundle && { bundle }),
    signedAt: new Date().toISOString(),
  };
  return signStatement(JSON.stringify(statement), authority);
}

/** Makes small runtimes of these versions and brings them to a controller. */
export async function bringBundles(
  { dir }: TestCluster,
  { operator }: TestController,
  versions: readonly string[],
): Promise<ReadonlyMap<string, Bundle>> {
  const bundles = new Map<string, Bundle>();
  for (const version of versions) {
    const { bundle, file } = await writeRuntime(dir, version, 20_000);
    await uploadBundle(operator, { bundle, file, start: 0 });
    bundles.set(version, bundle);
  }
  return bundles;
}
