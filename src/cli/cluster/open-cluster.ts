import { openControllers, type Controllers } from "#api/ask.ts";
import { formatEndpoint, parseEndpoint } from "#api/endpoint.ts";
import { KcoreError } from "#errors/problem.ts";
import { firstCertificate } from "#pki/chain.ts";
import { identityOf } from "#pki/identity.ts";
import { loadContext } from "#pki/contexts.ts";
import { contextHome } from "../process/kcore-home.ts";
import { keepOperator } from "./keep-operator.ts";
import type { ClusterFlags } from "../options.ts";
import { toStderr, type Say } from "../terminal/say.ts";
import { refuseWrongClock } from "#api/refuse-wrong-clock.ts";

/** The cluster of a command, as its operator reaches it. */
export interface Cluster extends Controllers {
  readonly context: string;
  /** Folder of the context's CA and issued certificates. */
  readonly folder: string;
  /** The trusted root in PEM. */
  readonly rootPem: string;
  /** The operator's certificate with its issuer, in PEM. */
  readonly cert: string;
  /** The cluster's name, which every identity in it has. */
  readonly cluster: string;
}

/**
 * Opens the chosen context's cluster; `-s` names other controllers than the context does. Unusable controllers are
 * reported, by default on stderr.
 * @throws KcoreError PKI_CONTEXT_UNKNOWN, CONFIG_INVALID, FILE_UNREADABLE, FILE_UNTRUSTED, USAGE
 */
export async function openCluster(
  { context, controller: given = [], project }: ClusterFlags,
  say: Say = toStderr,
): Promise<Cluster> {
  let present = await loadContext(contextHome(), context);
  if (await keepOperator(present, say)) present = await loadContext(contextHome(), context);
  const { name, folder, controllers, ca, cert, key } = present;
  const named = (given.length > 0 ? given : controllers).map((text) => formatEndpoint(parseEndpoint(text)));
  const opened = openControllers({
    endpoints: [...new Set(named)],
    credentials: { ca, cert, key },
    clock: Date.now,
    onFailed({ problems }, _endpoint, isLast) {
      if (isLast) return;
      for (const { message, code } of problems) say(`${message}  [${code}]; the next one is asked`);
    },
  });
  const { cluster } = identityOf(firstCertificate(cert), "client");
  const ask: Cluster["ask"] = (work, options) =>
    opened.ask(work, options).catch(async (error: unknown) => {
      if (given.length > 0) throw error;
      const { withRoster } = await import("./with-roster.ts");
      throw withRoster(error, options?.endpoints ?? opened.endpoints, project);
    });
  return { ...opened, ask, context: name, folder, rootPem: ca, cert, cluster };
}

/**
 * Compares this machine's clock with the controllers' clocks, before this machine signs for the cluster.
 * @throws KcoreError CLOCK_DIFFERS
 */
export async function checkClock({ context, endpoints }: Pick<Cluster, "context" | "endpoints">): Promise<void> {
  await refuseWrongClock({ ...(await loadContext(contextHome(), context)), endpoints });
}

/** The cluster; undefined without a current context if neither a flag nor the project names one. @throws KcoreError as openCluster */
export async function clusterIfAny(flags: ClusterFlags): Promise<Cluster | undefined> {
  try {
    return await openCluster(flags);
  } catch (error) {
    const isNone = error instanceof KcoreError && error.problems.every(({ code }) => code === "PKI_CONTEXT_UNKNOWN");
    if (isNone && flags.context === undefined) return undefined;
    throw error;
  }
}
