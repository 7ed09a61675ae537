import { Command } from "commander";
import { exitCodes, KcoreError } from "#errors/problem.ts";
import { openCluster, type Cluster } from "../open-cluster.ts";
import { addClusterOptions, addResultOption, type ClusterFlags } from "../options.ts";
import { formatTable } from "../table.ts";

interface Finding {
  readonly controller: string;
  readonly healthy: boolean;
  readonly version?: string;
  readonly nodes?: { readonly total: number; readonly ready: number };
  readonly reason?: string;
}

/** `kcore health`: asks every controller of the context; exits 1 when one is not healthy, 3 when none answers. */
export function healthCommand(): Command {
  return addResultOption(addClusterOptions(new Command("health")))
    .description("Ask every controller of the context whether it answers and is in step with the others")
    .addHelpText("after", "\nExamples:\n  kcore health\n  kcore health -o json")
    .action(health);
}

async function health({ output, ...flags }: ClusterFlags & { readonly output: "table" | "json" }): Promise<void> {
  const cluster = await openCluster(flags);
  const found = await Promise.all(cluster.endpoints.map((endpoint) => look(endpoint, cluster)));
  if (output === "json") process.stdout.write(`${JSON.stringify(found, undefined, 2)}\n`);
  else if (found.length === 0) process.stdout.write("no controller yet: kcore orchestrate deploy_node NODE\n");
  else
    process.stdout.write(
      formatTable(
        ["CONTROLLER", "HEALTH", "VERSION", "NODES", "REASON"],
        found.map(({ controller, healthy, version = "", nodes, reason = "" }) => [
          controller,
          healthy ? "ok" : "unhealthy",
          version,
          nodes ? `${nodes.ready}/${nodes.total} ready` : "",
          reason,
        ]),
      ),
    );
  if (found.some(({ healthy }) => !healthy))
    process.exitCode = found.every(({ version }) => version === undefined) ? exitCodes.unreachable : exitCodes.failed;
}

async function look(controller: string, { askAt }: Cluster): Promise<Finding> {
  try {
    const { ready, reason, version, nodes, peers } = await askAt(controller, (client) => client.call("ready", {}));
    const behind = peers
      .filter(({ inStep }) => !inStep)
      .map((peer) => `${peer.controllerId}: ${peer.reason ?? "behind"}`);
    const why = [...(ready ? [] : [reason ?? "not ready"]), ...behind].join("; ");
    return { controller, healthy: why === "", version, nodes, ...(why === "" ? {} : { reason: why }) };
  } catch (error) {
    if (!(error instanceof KcoreError)) throw error;
    return {
      controller,
      healthy: false,
      reason: error.problems.map(({ message, code }) => `${message} [${code}]`).join("; "),
    };
  }
}
