import { z } from "zod";
import { poll } from "#base/wait.ts";
import { askOnce } from "#api/ask.ts";
import { formatEndpoint, parseEndpoint } from "#api/endpoint.ts";
import { defineAction, type ActionContext, type ActionResult } from "#engine/orchestrate/action.ts";
import { KcoreError, type Problem } from "#errors/problem.ts";
import { firstCertificate } from "#pki/chain.ts";
import { daysLeft, renewOperatorIfNeeded } from "#pki/cluster.ts";
import { openIssuer } from "#pki/rotate-bastion.ts";
import type { Context } from "#pki/contexts.ts";
import { askingOf, checkClockOnce, hostsOfRoster, isController, noteFounded, openContext } from "./cluster-context.ts";

const Args = z.strictObject({
  timeout: z.number().positive().max(300).default(5).describe("Seconds that each controller may take to answer"),
  settle: z
    .number()
    .min(0)
    .max(600)
    .default(20)
    .describe("Seconds that controllers which answer may take until they are in step with each other"),
});
type Args = z.output<typeof Args>;

interface ControllerFinding {
  readonly endpoint: string;
  readonly host: string;
  readonly port: number;
  readonly required: boolean;
  readonly answers: boolean;
  readonly problems: readonly Problem[];
}

/**
 * Checks that every controller that the context knows answers and is in step with its peers. A context without controllers
 * is healthy. Controllers on nodes that this run deploys are checked but not required.
 */
export const clusterHealth = defineAction({
  name: "cluster.health",
  summary: "Checks that every controller the context knows answers and replicates.",
  outputs: ["controllers", "healthy"],
  args: Args,
  // Without the check no controller is known to answer, so no node has to reach one.
  leftOut: { healthy: false, controllers: [] },
  async run(args, context) {
    const cluster = await openContext(context);
    if (!hasExpired(cluster)) return checkHealth(args, cluster, context);
    await checkClockOnce(context);
    // With an expired certificate no run would reach pki.issueNode, which otherwise renews it in time.
    const authority = await openIssuer(cluster.folder, await context.passphrase());
    await renewOperatorIfNeeded(cluster.folder, authority, Date.now());
    context.note("renewed the operator's certificate, which had expired");
    return checkHealth(args, await openContext(context), context);
  },
  // The check changes nothing, so a dry run makes it, too.
  async plan(args, context) {
    const cluster = await openContext(context);
    return hasExpired(cluster) ? "unknown" : checkHealth({ ...args, settle: 0 }, cluster, context);
  },
});

function hasExpired({ cert }: Context): boolean {
  return daysLeft(firstCertificate(cert), Date.now()) <= 0;
}

async function checkHealth(args: Args, cluster: Context, context: ActionContext): Promise<ActionResult> {
  let findings: Awaited<ReturnType<typeof checkControllers>> = [];
  // Controllers that were just written to, or restarted, can lag for a moment; a controller that is down is reported at once.
  const isSettled = async (): Promise<boolean> => {
    findings = await checkControllers(args, cluster, context);
    return !findings.some(isSettling) || findings.some(isDown);
  };
  await poll(isSettled, { everyMs: 500, limitMs: args.settle * 1000, signal: context.signal });
  const problems = findings.filter(({ required }) => required).flatMap((finding) => finding.problems);
  if (problems.length > 0) throw new KcoreError(problems, { exitCode: 1 });
  if (!findings.some((finding) => finding.problems.length === 0)) refuseWithoutFounder(context);
  for (const { endpoint, problems: found } of findings) {
    const text = found.length === 0 ? "is healthy" : "is not healthy yet; this run deploys it";
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

/**
 * Stops the run if a node that was to be a controller has failed: the remaining nodes could only wait for it. A dry run goes on, to show
 * the obstacles of the remaining nodes.
 */
function refuseWithoutFounder({ ended, nodes, targets, dryRun }: ActionContext): void {
  const [failed] = [...ended].filter(([name, { outcome }]) => {
    const node = nodes.get(name);
    return node && isController(node) && (outcome === "failed" || outcome === "unreachable");
  });
  if (!failed || dryRun || ended.size >= targets.length) return;
  const [name, { problem }] = failed;
  throw new KcoreError(
    {
      code: "CLUSTER_UNHEALTHY",
      message: `${name} was to be a controller and failed, and no other controller answers: nothing is changed on the other nodes`,
      hint: `mend ${name}${problem ? ` (${problem.code})` : ""}, then run it again`,
    },
    { exitCode: 1 },
  );
}

function isSettling({ required, answers, problems }: ControllerFinding): boolean {
  return required && answers && problems.length > 0;
}

function isDown({ required, answers }: ControllerFinding): boolean {
  return required && !answers;
}

async function checkControllers(
  { timeout }: Args,
  cluster: Context,
  context: ActionContext,
): Promise<readonly ControllerFinding[]> {
  const { targets, nodes, signal } = context;
  const deployed = targets.flatMap((name) => nodes.get(name) ?? []);
  const hosts = hostsOfRoster(deployed);
  const ids = new Set(deployed.map(({ id }) => id));
  const findings = await Promise.all(
    cluster.controllers.map(async (text): Promise<ControllerFinding> => {
      const endpoint = parseEndpoint(text);
      const required = !hosts.has(endpoint.host.toLowerCase());
      return {
        endpoint: formatEndpoint(endpoint),
        ...endpoint,
        required,
        ...(await checkController(text, cluster, ids, timeout, context)),
      };
    }),
  );
  signal.throwIfAborted();
  return findings;
}

const skipHint = "--skip-health goes on regardless, and is recorded";

/** Whether one controller answers, and its problems; none if it is healthy. Peers that this run deploys are perhaps out of step. */
async function checkController(
  endpoint: string,
  cluster: Context,
  deployed: ReadonlySet<string>,
  timeout: number,
  context: ActionContext,
): Promise<Pick<ControllerFinding, "answers" | "problems">> {
  const unhealthy = (reason: string): Problem => ({
    code: "CLUSTER_UNHEALTHY",
    message: `controller ${endpoint} is not healthy: ${reason}`,
    hint: `its log says more: journalctl -u kcore-controller; ${skipHint}`,
  });
  const asking = { ...askingOf(cluster, context, [endpoint]), timeoutMs: timeout * 1000 };
  try {
    const health = await askOnce(asking, (client) => client.call("ready", {}));
    if (!health.ready) return { answers: true, problems: [unhealthy(health.reason ?? "it is not ready")] };
    await noteFounded(cluster, context);
    const behind = health.peers.filter(({ controllerId, inStep }) => !inStep && !deployed.has(controllerId));
    const problems = behind.map((peer) =>
      unhealthy(`it is not in step with ${peer.address || peer.controllerId}: ${peer.reason ?? "no reason given"}`),
    );
    return { answers: true, problems };
  } catch (error) {
    if (error instanceof KcoreError) {
      const problems = error.problems.map(({ hint, ...problem }) => ({
        ...problem,
        hint: hint === undefined ? skipHint : `${hint}; ${skipHint}`,
      }));
      return { answers: false, problems };
    }
    context.signal.throwIfAborted();
    throw error;
  }
}
