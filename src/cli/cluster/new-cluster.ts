import { createCluster, type CreatedCluster } from "#pki/cluster.ts";
import { contextHome } from "./context-home.ts";
import { whoAmI } from "../process/who.ts";
import { newCaPassphrase } from "./ca-passphrase.ts";

/** What `kcore create cluster` and a `Cluster` manifest say. */
export interface ClusterRequest {
  readonly context: string;
  readonly controllers: readonly string[];
  readonly passphraseFile?: string;
  readonly force?: boolean;
}

/** Makes a cluster's CA and context; the passphrase is given, or asked for twice. @throws KcoreError */
export async function makeCluster({ passphraseFile, ...request }: ClusterRequest): Promise<CreatedCluster> {
  const passphrase = await newCaPassphrase(passphraseFile);
  return createCluster({
    ...contextHome(),
    ...request,
    operator: whoAmI().split("@")[0] ?? "operator",
    passphrase,
    now: Date.now(),
  });
}
