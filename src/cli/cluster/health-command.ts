import { Command } from "commander";
import { exitCodes, KcoreError } from "#errors/problem.ts";
import { needsBackup } from "#pki/context-backup.ts";
import type { ExpiryWarning } from "#pki/expectation.ts";
import { openCluster, type Cluster } from "./open-cluster.ts";
import { endingsHere } from "./keep-operator.ts";
import { addClusterOptions, addResultOption, type ClusterFlags } from "../options.ts";
import { formatTable } from "../terminal/format-table.ts";
import { toStderr } from "../terminal/say.ts";
import { printResult } from "../terminal/format-result.ts";

interface HealthRow {
  readonly controller: string;
  readonly healthy: boolean;
  readonly dc?: string;
  readonly version?: string;
  readonly nodes?: { readonly total: number; readonly ready: number };
  readonly reason?: string;
  readonly warnings?: readonly string[];
}

/** `kcore health`. */
export function healthCommand(): Command {
  return addResultOption(addClusterOptions(new Command("health")), ["table", "json", "yaml"])
    .description("Check that every controller of the context answers and has replicated the others' changes")
    .addHelpText(
      "after",
      `
Examples:
  kcore health
  kcore -s 192.0.2.11 health -o json

Ends with “cluster is healthy”, or names what is not. It exits 1 when a controller is not healthy, or when a certificate of this
machine ends within two days; nodes that are not ready are counted.`,
    )
    .action(health);
}

type Flags = ClusterFlags & { readonly output: "table" | "json" | "yaml" };

async function health({ output, ...flags }: Flags): Promise<void> {
  const cluster = await openCluster(flags);
  const found = await Promise.all(cluster.endpoints.map((endpoint) => askHealth(endpoint, cluster)));
  // Opening the cluster has warned of all that end soon: here only those count that fail the check.
  const ending = (await endingsHere({ ...cluster, ca: cluster.rootPem }, Date.now())).filter(
    ({ isFailure }) => isFailure,
  );
  printResult(found, output, () => draw(found, ending));
  if (needsBackup(cluster.folder)) toStderr("the CA's keys lie on this machine alone: kcore cluster backup FILE");
  if (ending.length > 0 || found.some(({ healthy }) => !healthy)) process.exitCode = exitCodes.failed;
}

function draw(found: readonly HealthRow[], ending: readonly ExpiryWarning[]): string {
  if (found.length === 0) return "no controller yet: kcore orchestrate deploy_node NODE\n";
  const table = formatTable(
    ["CONTROLLER", "HEALTH", "DC", "VERSION", "NODES", "REASON"],
    found.map(({ controller, healthy, dc = "-", version = "-", nodes, reason = "-" }) => [
      controller,
      healthy ? "ok" : "unhealthy",
      dc,
      version,
      nodes ? `${nodes.ready}/${nodes.total} ready` : "-",
      reason,
    ]),
  );
  const warnings = found.flatMap(({ controller, warnings: texts = [] }) =>
    texts.map((text) => `warning: ${controller}: ${text}\n`),
  );
  const sick = found.filter(({ healthy }) => !healthy).length;
  const here = ending.map(({ message }) => message).join("; ");
  const healthy = here === "" ? verdictOnNodes(found) : here;
  const verdict = sick === 0 ? healthy : `${sick} of ${found.length} controllers are not healthy`;
  return `${table}${warnings.join("")}${verdict}\n`;
}

/** Judges the nodes by the controller that counts the most nodes as not ready. */
function verdictOnNodes(found: readonly HealthRow[]): string {
  const [worst] = found.flatMap(({ nodes }) => nodes ?? []).toSorted((a, b) => b.total - b.ready - (a.total - a.ready));
  if (!worst || worst.ready === worst.total) return "cluster is healthy";
  return `controllers are healthy; ${worst.ready} of ${worst.total} nodes ${worst.ready === 1 ? "is" : "are"} ready: kcore get nodes`;
}

async function askHealth(controller: string, { ask }: Cluster): Promise<HealthRow> {
  try {
    const answer = await ask((client) => client.call("ready", {}), { endpoints: [controller] });
    const { ready, reason, dc, version, nodes, peers, warnings } = answer;
    const behind = peers
      .filter(({ inStep }) => !inStep)
      .map((peer) => `${peer.address || peer.controllerId}: ${peer.reason ?? "behind"}`);
    const why = [...(ready ? [] : [reason ?? "not ready"]), ...behind].join("; ");
    const state = { controller, healthy: why === "", dc, version, nodes };
    return { ...state, ...(why !== "" && { reason: why }), ...(warnings.length > 0 && { warnings }) };
  } catch (error) {
    if (!(error instanceof KcoreError)) throw error;
    const reason = error.problems.map(({ message, code }) => `${message} [${code}]`).join("; ");
    return { controller, healthy: false, reason };
  }
}
