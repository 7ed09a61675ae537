import { ApiRefusal, type ApiClient } from "#api/client.ts";
import { clusterIfAny, type Cluster } from "../cluster/open-cluster.ts";
import type { ClusterFlags } from "../options.ts";

/** The cluster to keep records in, or why there is none yet. */
export type RecordPlace = { readonly cluster: Cluster } | { readonly none: string };

/**
 * Opens the cluster if there is one. No context, or a context without a controller, is how every cluster begins, and no
 * error. @throws KcoreError for a context that is broken
 */
export async function recordPlace(flags: ClusterFlags): Promise<RecordPlace> {
  const cluster = await clusterIfAny(flags);
  if (!cluster) return { none: "there is no cluster yet" };
  return cluster.endpoints.length > 0 ? { cluster } : { none: "the cluster has no controller yet" };
}

/** A record's value; undefined when there is none. */
export async function readRecord(client: ApiClient, kind: string, name: string): Promise<unknown> {
  return (await orUnknown(() => client.call("getObject", {}, { id: `${kind}/${name}` })))?.value;
}

/** The answer, or undefined when the controller knows no such thing. */
export async function orUnknown<Answer>(ask: () => Promise<Answer>): Promise<Answer | undefined> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof ApiRefusal && error.status === 404) return undefined;
    throw error;
  }
}
