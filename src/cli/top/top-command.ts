import { Command, Option } from "commander";
import { KcoreError, usageError } from "#errors/problem.ts";
import { openCluster, type Cluster } from "../cluster/open-cluster.ts";
import { findProject } from "../project/find-project.ts";
import { addClusterOptions, type ClusterFlags } from "../options.ts";
import { canDrawOn } from "../terminal/choose-view.ts";
import { printJson } from "../terminal/print-json.ts";

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
  const { OtherControllers } = await import("./ask-controllers.ts");
  const { readFleet, snapshotOf } = await import("./read-fleet.ts");
  const told = await cluster.ask((client) => readFleet(client, new Set(), undefined));
  const others = new OtherControllers(cluster);
  others.ask(told.controllers, () => undefined);
  await others.settled();
  const snapshot = snapshotOf(cluster.context, told, others.tellings);
  const { drawOnce } = await import("./draw-once.ts");
  const text =
    output === "json"
      ? `${printJson({ ...snapshot, at: new Date(snapshot.at).toISOString() }, 2)}\n`
      : drawOnce(snapshot);
  process.stdout.write(text);
}

async function watchFleet(cluster: Cluster, project: string | undefined): Promise<void> {
  const { FleetFollower } = await import("./follow-fleet.ts");
  const { runsOfNode } = await import("./runs-of-node.ts");
  const { readFleet, snapshotOf } = await import("./read-fleet.ts");
  // Where no controller answers there is nothing to look at: that is an error before the terminal is taken.
  const first = await cluster.ask((client) => readFleet(client, new Set(), undefined));
  const stop = new AbortController();
  const { openFleet } = await import("./open-fleet.ts");
  const view = await openFleet({
    snapshot: snapshotOf(cluster.context, first, new Map()),
    leave: () => stop.abort(),
    openNode: (id) => follower.openNode(id),
  });
  const follower = new FleetFollower(cluster, {
    signal: stop.signal,
    first,
    show: view.show,
    tell: view.tell,
    ...(project !== undefined && { runsOf: (node: string) => runsOfNode(project, node) }),
  });
  try {
    await follower.run();
  } finally {
    await view.close();
  }
}

/** Where top is called outside a project, nodes have no runs. @throws KcoreError for a project that is named and is none */
function projectIfAny(given: string | undefined): string | undefined {
  try {
    return findProject(given);
  } catch (error) {
    if (given === undefined && error instanceof KcoreError) return undefined;
    throw error;
  }
}
