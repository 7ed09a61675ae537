import { setTimeout as sleep } from "node:timers/promises";
import { Command } from "commander";
import type { NodeView } from "#api/schemas.ts";
import { printYaml } from "#engine/source/plain.ts";
import { KcoreError } from "#errors/problem.ts";
import { formatDuration } from "#tui/line.ts";
import { openCluster } from "../open-cluster.ts";
import { addClusterOptions, addResultOption, allFormats, type ClusterFlags, type ResultFormat } from "../options.ts";
import { drawFailure } from "../report.ts";
import { formatTable } from "../table.ts";

interface GetFlags extends ClusterFlags {
  readonly output: ResultFormat;
  readonly watch?: boolean;
}

/** `kcore get nodes`. */
export function getCommand(): Command {
  const get = new Command("get")
    .description("What the cluster knows")
    .addHelpText("after", "\nExamples:\n  kcore get nodes\n  kcore get nodes -o wide -w\n  kcore get nodes -o json");
  addResultOption(addClusterOptions(get.command("nodes [id]")), allFormats)
    .description("List the cluster's nodes, or one of them (id or host name)")
    .option("-w, --watch", "go on, and print what changes, every two seconds")
    .action(getNodes);
  return get;
}

async function getNodes(id: string | undefined, { output, watch = false, ...flags }: GetFlags): Promise<void> {
  let shown = "";
  for (;;) {
    let text: string;
    try {
      const { ask } = await openCluster(flags);
      const { nodes } = await ask((client) => client.call("listNodes", {}));
      text = format(select(nodes, id), output, watch);
    } catch (error) {
      // A watch outlives a controller that restarts.
      if (!watch || shown === "" || !(error instanceof KcoreError)) throw error;
      text = drawFailure(error);
    }
    if (text !== shown) process.stdout.write(text);
    shown = text;
    if (!watch) return;
    await sleep(2000);
  }
}

function select(nodes: readonly NodeView[], id: string | undefined): readonly NodeView[] {
  const found = nodes.filter((node) => id === undefined || node.id === id || node.hostname === id);
  if (found.length > 0 || id === undefined) return found.toSorted((a, b) => a.hostname.localeCompare(b.hostname));
  throw new KcoreError({ code: "NODE_UNKNOWN", message: `the cluster knows no node “${id}”`, hint: "kcore get nodes" });
}

function format(nodes: readonly NodeView[], output: ResultFormat, watch: boolean): string {
  if (output === "json") return `${JSON.stringify(nodes, undefined, watch ? undefined : 2)}\n`;
  if (output === "yaml") return `${watch ? "---\n" : ""}${printYaml(nodes)}`;
  if (nodes.length === 0) return "no nodes yet: kcore orchestrate deploy_node NODE\n";
  const wide = output === "wide";
  const heading = [
    "NAME",
    "STATUS",
    "ROLES",
    "DC",
    "ADDRESS",
    "VERSION",
    "AGE",
    ...(wide ? ["CPU", "MEMORY", "LAST SEEN", "CERTIFICATE", "ID", "REASON"] : []),
  ];
  return formatTable(
    heading,
    nodes.map((node) => [
      node.hostname,
      statusWords[node.status],
      node.roles.join(","),
      node.dc,
      node.address,
      node.version,
      // A table that is watched changes when the cluster does, not with every second.
      watch ? node.registered.slice(0, 10) : ago(node.registered),
      ...(wide ? wideCells(node, watch) : []),
    ]),
  );
}

function wideCells(node: NodeView, watch: boolean): readonly string[] {
  const memory = `${(node.memory / 2 ** 30).toFixed(1)} GiB`;
  const seen = watch ? "" : ago(node.lastSeen);
  return [String(node.cpu), memory, seen, node.certificateExpires.slice(0, 10), node.id, node.reason ?? ""];
}

const statusWords = { pending: "Pending", ready: "Ready", "not-ready": "NotReady", rejected: "Rejected", unknown: "Unknown" } as const;

function ago(time: string): string {
  return formatDuration(Math.max(0, Date.now() - Date.parse(time)));
}
