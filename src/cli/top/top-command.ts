import { Command, Option } from "commander";
import { usageError } from "#errors/problem.ts";
import { openCluster, type Cluster } from "../cluster/open-cluster.ts";
import { projectIfAny } from "../project/find-project.ts";
import { addClusterOptions, type ClusterFlags } from "../options.ts";
import { canDrawOn } from "../terminal/choose-view.ts";
import { printResult } from "../terminal/format-result.ts";

interface Flags extends ClusterFlags {
  readonly once?: boolean;
  readonly output?: "table" | "json";
}

/** `kcore top`. */
export function topCommand(): Command {
  return addClusterOptions(new Command("top"))
    .description("Watch the whole cluster: nodes, datacenters, controllers, certificates, conflicts, updates")
    .option("--once", "print what stands now, and end")
    .addOption(new Option("-o, --output <format>", "how --once prints it").choices(["table", "json"]))
    .addHelpText(
      "after",
      `
Examples:
  kcore top                                   the current context's cluster; ? shows the keys, q leaves
  kcore top -s 192.0.2.11 -s 192.0.2.12       the second is asked when the first is lost
  kcore top --once                            for a log
  kcore top --once -o json | jq '.nodes[] | select(.status != "ready") | .hostname'

It only looks: nothing in the cluster is changed by it. Without a terminal: --once, or kcore get nodes -w.`,
    )
    .action(showTop);
}

async function showTop({ once = false, output, ...flags }: Flags): Promise<void> {
  if (output !== undefined && !once) throw usageError("--output needs --once", "kcore top --once -o json");
  if (!once && !canDrawOn())
    throw usageError(
      "kcore top needs a terminal for both input and output",
      "kcore get nodes -w follows the nodes in lines; kcore top --once prints what stands now",
    );
  const cluster = await openCluster(flags);
  await (once ? printOnce(cluster, output ?? "table") : watchFleet(cluster, projectIfAny(flags.project)));
}

async function printOnce(cluster: Cluster, output: "table" | "json"): Promise<void> {
  const { readFleetOnce } = await import("./follow-fleet.ts");
  const snapshot = await readFleetOnce(cluster);
  if (output === "json") return printResult({ ...snapshot, at: new Date(snapshot.at).toISOString() }, output);
  const { drawOnce } = await import("./draw-once.ts");
  process.stdout.write(drawOnce(snapshot));
}

async function watchFleet(cluster: Cluster, project: string | undefined): Promise<void> {
  const { openFleet } = await import("./follow-fleet.ts");
  const { runsOfNode } = await import("./runs-of-node.ts");
  const { revisionWords } = await import("#engine/orchestrate/node-revisions.ts");
  const stop = new AbortController();
  // Without any controller there is nothing to show: the error comes before the view takes the terminal.
  const { snapshot, openNode, run } = await openFleet(
    cluster,
    stop.signal,
    project === undefined ? undefined : (node) => runsOfNode(project, node),
    project === undefined ? undefined : () => revisionWords(project),
  );
  const { openFleetScreen } = await import("./open-fleet-screen.ts");
  const view = await openFleetScreen({ snapshot, openNode, leave: () => stop.abort() });
  try {
    await run(view);
  } finally {
    await view.close();
  }
}
