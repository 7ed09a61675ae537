import { refuseSecondCluster } from "#actions/pki-create-cluster.ts";
import { createCluster, type CreatedCluster } from "#pki/cluster.ts";
import { readConfig } from "#pki/contexts.ts";
import { contextHome } from "../process/kcore-home.ts";
import { whoAmI } from "../process/who.ts";
import { fromProject } from "../project/project-cluster.ts";
import { rosterIfAny } from "../roster/own-roster.ts";
import { newCaPassphrase } from "./ca-passphrase.ts";

/** The values of `kcore create cluster` and of a `Cluster` manifest. */
export interface ClusterRequest {
  readonly context: string;
  readonly controllers: readonly string[];
  readonly passphraseFile?: string;
  readonly force?: boolean;
  /** `--project`: the project whose roster's controllers are asked first whether a cluster exists already. */
  readonly project?: string;
}

/** Makes a cluster's CA and context; the passphrase is given, or asked for twice. */
export async function makeCluster({ passphraseFile, project, ...request }: ClusterRequest): Promise<CreatedCluster> {
  const { context, controllers, force = false } = request;
  if (!force && !Object.hasOwn((await readConfig(contextHome())).contexts, context))
    await refuseSecondCluster(fromProject(project, rosterIfAny)?.nodes.values() ?? [], controllers);
  const passphrase = await newCaPassphrase(passphraseFile);
  return createCluster({
    ...contextHome(),
    ...request,
    operator: whoAmI().split("@")[0] ?? "operator",
    passphrase,
    now: Date.now(),
  });
}

/** Says whether a new context is the current one; if not, by which command it becomes that. */
export function describeCurrent(context: string, current: string | undefined): string {
  return current === context
    ? "it is the current context"
    : `the current context stays “${current}”: kcore config use-context ${context}`;
}
