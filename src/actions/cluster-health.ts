import { z } from "zod";
import { askOne } from "#api/ask.ts";
import { formatEndpoint, parseEndpoint } from "#api/endpoint.ts";
import { defineAction } from "#engine/orchestrate/action.ts";
import type { ActionContext, ActionResult } from "#engine/orchestrate/action.ts";
import { KcoreError } from "#errors/problem.ts";
import type { Problem } from "#errors/problem.ts";
import { firstCertificate } from "#pki/certificate.ts";
import { daysLeft, openAuthority, renewOperatorIfNeeded } from "#pki/cluster.ts";
import type { Context } from "#pki/contexts.ts";
import { openContext } from "./cluster-place.ts";

const Args = z.strictObject({
  timeout: z.number().positive().max(300).default(5).describe("Seconds that each controller may take to answer"),
});

interface Finding {
  readonly endpoint: string;
  readonly host: string;
  readonly port: number;
  readonly required: boolean;
  readonly problems: readonly Problem[];
}

/**
 * Checks that every controller that the context knows answers and is in step with its peers. No controller yet is
 * healthy; endpoints on nodes that this run itself deploys are looked at but not required.
 */
export const clusterHealth = defineAction({
  name: "cluster.health",
  summary: "Checks that every controller the context knows answers and replicates.",
  args: Args,
  async run({ timeout }, context) {
    const cluster = await openContext(context);
    if (!hasExpired(cluster)) return checkHealth(timeout, cluster, context);
    // Otherwise nobody could ever get as far as pki.issueNode, which renews it in time.
    const authority = await openAuthority(cluster.folder, await context.passphrase());
    await renewOperatorIfNeeded(cluster.folder, authority, Date.now());
    context.note("renewed the operator's certificate, which had expired");
    return checkHealth(timeout, await openContext(context), context);
  },
  // Nothing is changed by looking.
  async plan({ timeout }, context) {
    const cluster = await openContext(context);
    return hasExpired(cluster) ? "unknown" : checkHealth(timeout, cluster, context);
  },
});

function hasExpired({ cert }: Context): boolean {
  return daysLeft(firstCertificate(cert), Date.now()) <= 0;
}

async function checkHealth(timeout: number, cluster: Context, context: ActionContext): Promise<ActionResult> {
  const deployed = new Set(
    context.targets
      .flatMap((name) => [name, context.nodes.get(name)?.address ?? name])
      .map((host) => host.toLowerCase()),
  );
  const findings = await Promise.all(
    cluster.controllers.map(async (text): Promise<Finding> => {
      const endpoint = parseEndpoint(text);
      const required = !deployed.has(endpoint.host.toLowerCase());
      return {
        endpoint: formatEndpoint(endpoint),
        ...endpoint,
        required,
        problems: await look(text, cluster, timeout, context.signal),
      };
    }),
  );
  context.signal.throwIfAborted();
  const problems = findings.filter(({ required }) => required).flatMap((finding) => finding.problems);
  if (problems.length > 0) throw new KcoreError(problems, { exitCode: 1 });
  for (const { endpoint, problems: found } of findings) {
    const text = found.length === 0 ? "is healthy" : "does not answer yet; this run deploys it";
    context.note(`controller ${endpoint} ${text}`);
  }
  if (findings.length === 0) context.note("no controller yet");
  const controllers = findings.map(({ endpoint, host, port, problems: found }) => ({
    endpoint,
    host,
    port,
    healthy: found.length === 0,
  }));
  return { changed: false, outputs: { healthy: true, controllers } };
}

/** What is wrong with one controller; nothing when it is healthy. */
async function look(
  endpoint: string,
  { ca, cert, key }: Context,
  timeout: number,
  signal: AbortSignal,
): Promise<readonly Problem[]> {
  const unhealthy = (reason: string): Problem => ({
    code: "CLUSTER_UNHEALTHY",
    message: `controller ${endpoint} is not healthy: ${reason}`,
    hint: "its log says more: journalctl -u kcore-controller; --skip-health goes on regardless, and is recorded",
  });
  const options = { credentials: { ca, cert, key }, clock: Date.now, signal, timeoutMs: timeout * 1000 };
  try {
    const health = await askOne(endpoint, options, (client) => client.call("ready", {}));
    const behind = health.peers.filter(({ inStep }) => !inStep);
    if (!health.ready) return [unhealthy(health.reason ?? "it is not ready")];
    return behind.map((peer) =>
      unhealthy(`it is not in step with ${peer.controllerId}: ${peer.reason ?? "no reason given"}`),
    );
  } catch (error) {
    if (error instanceof KcoreError) return error.problems;
    signal.throwIfAborted();
    throw error;
  }
}
