import { Command } from "commander";
import { exitCodes, KcoreError } from "#errors/problem.ts";
import { formatResult } from "../terminal/format-result.ts";
import { openCluster, type Cluster } from "./open-cluster.ts";
import { addClusterOptions, addResultOption, type ClusterFlags } from "../options.ts";
import { formatTable } from "../terminal/format-table.ts";

interface Finding {
  readonly controller: string;
  readonly healthy: boolean;
  readonly dc?: string;
  readonly version?: string;
  readonly nodes?: { readonly total: number; readonly ready: number };
  readonly reason?: string;
  readonly warnings?: readonly string[];
}

/** `kcore health`: asks every controller of the context; exits 1 when one is not healthy. */
export function healthCommand(): Command {
  return addResultOption(addClusterOptions(new Command("health")), ["table", "json", "yaml"])
    .description("Check that every controller of the context answers and has replicated the others' changes")
    .addHelpText(
      "after",
      `
Examples:
  kcore health
  kcore -s 192.0.2.11 health -o json

Ends with “cluster is healthy” and code 0, or names what is not and exits 1.`,
    )
    .action(health);
}

type Flags = ClusterFlags & { readonly output: "table" | "json" | "yaml" };

async function health({ output, ...flags }: Flags): Promise<void> {
  const cluster = await openCluster(flags);
  const found = await Promise.all(cluster.endpoints.map((endpoint) => look(endpoint, cluster)));
  process.stdout.write(formatResult(found, output, () => draw(found)));
  if (found.some(({ healthy }) => !healthy)) process.exitCode = exitCodes.failed;
}

function draw(found: readonly Finding[]): string {
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
  const verdict = sick === 0 ? "cluster is healthy" : `${sick} of ${found.length} controllers are not healthy`;
  return `${table}${warnings.join("")}${verdict}\n`;
}

async function look(controller: string, { ask }: Cluster): Promise<Finding> {
  try {
    const answer = await ask((client) => client.call("ready", {}), { endpoints: [controller] });
    const { ready, reason, dc, version, nodes, peers, warnings } = answer;
    const behind = peers
      .filter(({ inStep }) => !inStep)
      .map((peer) => `${peer.controllerId}: ${peer.reason ?? "behind"}`);
    const why = [...(ready ? [] : [reason ?? "not ready"]), ...behind].join("; ");
    const state = { controller, healthy: why === "", dc, version, nodes };
    return { ...state, ...(why !== "" && { reason: why }), ...(warnings.length > 0 && { warnings }) };
  } catch (error) {
    if (!(error instanceof KcoreError)) throw error;
    const reason = error.problems.map(({ message, code }) => `${message} [${code}]`).join("; ");
    return { controller, healthy: false, reason };
  }
}
