import { refuseWrongClock } from "#api/refuse-wrong-clock.ts";
import { loadContext } from "#pki/contexts.ts";
import { contextHome } from "./context-home.ts";
import type { Cluster } from "./open-cluster.ts";

/** Compares this machine's clock with those of a cluster's controllers, before it signs for the cluster. @throws KcoreError CLOCK_DIFFERS */
export async function checkClock({ context, endpoints }: Pick<Cluster, "context" | "endpoints">): Promise<void> {
  await refuseWrongClock({ ...(await loadContext(contextHome(), context)), endpoints });
}
