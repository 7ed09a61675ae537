import { Command } from "commander";
import type { ApiClient } from "#api/client.ts";
import type { NodeView } from "#api/schemas.ts";
import type { UnlockFlags } from "../adhoc/unlock-nodes.ts";
import { addProjectOption, addClusterOptions, type ClusterFlags } from "../options.ts";
import { addNodeHardware, addNodeInstall } from "../install/install-command.ts";
import { changeNodes, nodeTitle, findNodes } from "./find-node.ts";
import { requireYes } from "../terminal/ask-operator.ts";
import { openCluster } from "../cluster/open-cluster.ts";
import { readLabelChanges, readTaintChanges } from "./label-changes.ts";
import { addNodeWork } from "./work-commands.ts";

/** `kcore node …`. */
export function nodeCommand(): Command {
  const node = new Command("node").description("The cluster's nodes");
  addNodeInstall(node);
  addNodeHardware(node);
  addNodeChanges(node);
  addNodeWork(node);
  addProjectOption(node.command("unlock <target>"))
    .description("Free nodes that a finished or dead run still holds; says whose run it is, and asks")
    .option("--yes", "do not ask")
    .addHelpText("after", "\nExamples:\n  kcore node unlock n1\n  kcore node unlock 'role:worker' --yes")
    .action(async (target: string, flags: UnlockFlags) =>
      (await import("../adhoc/unlock-nodes.ts")).unlockNodes(target, flags),
    );
  return node;
}

type DecisionFlags = ClusterFlags & { readonly reason?: string };

/** `kcore node approve|reject|label|taint|remove`. */
export function addNodeChanges(node: Command): void {
  addClusterOptions(node.command("approve <node...>"))
    .description("Approve nodes: let them into the cluster")
    .option("--reason <text>", "kept with the approval")
    .addHelpText(
      "after",
      "\nExamples:\n  kcore node approve n1\n  kcore node approve 6f1c2a52 --reason 'seen it myself'",
    )
    .action((words: readonly string[], flags: DecisionFlags) => changeNodes(words, flags, decision("approve", flags)));
  addClusterOptions(node.command("reject <node...>"))
    .description("Reject nodes: controllers refuse their requests from then on")
    .option("--reason <text>", "kept with the rejection")
    .addHelpText(
      "after",
      "\nExamples:\n  kcore node reject n1 --reason 'stolen'\n\nA later `kcore node approve` lets the node in again; when both happen at once, the rejection wins.",
    )
    .action((words: readonly string[], flags: DecisionFlags) => changeNodes(words, flags, decision("reject", flags)));
  addClusterOptions(node.command("label <node> <change...>"))
    .description("Set labels (key=value) and take labels away (key-)")
    .addHelpText(
      "after",
      "\nExamples:\n  kcore node label n1 tier=ssd rack=7\n  kcore node label n1 old-\n\nThese labels are the cluster's (kcore get nodes -l tier=ssd); --on label:tier=ssd means labels of the roster.",
    )
    .action(label);
  addClusterOptions(node.command("taint <node> <change...>"))
    .description("Set taints (key=value:Effect, key:Effect) and take taints away (key-)")
    .addHelpText(
      "after",
      "\nExamples:\n  kcore node taint n1 dedicated=gpu:NoSchedule\n  kcore node taint n1 dedicated-\n\nEffects: NoSchedule, PreferNoSchedule, NoExecute.",
    )
    .action(taint);
  addClusterOptions(node.command("remove <node...>"))
    .description("Remove nodes for good: their ids are never accepted again")
    .option("--reason <text>", "kept with the removal")
    .option("--yes", "do not ask")
    .addHelpText(
      "after",
      "\nExamples:\n  kcore node remove n1\n  kcore node remove 6f1c2a52-7c1e-4f0e-9a50-0d8a3b0f4e11 --yes\n\nThis tells the cluster alone. The whole removal, with work, controller and machine: kcore orchestrate remove_node NODE",
    )
    .action(remove);
}

function decision(what: "approve" | "reject", { reason }: DecisionFlags) {
  const [method, wanted] =
    what === "approve" ? (["approveNode", "approved"] as const) : (["rejectNode", "rejected"] as const);
  return async (client: ApiClient, node: NodeView): Promise<string> => {
    // A reject is sent in any case: it wins over an approve at another controller, which may not have arrived here yet.
    if (what === "approve" && node.approval === wanted && node.status !== "unknown")
      return `${nodeTitle(node)} is ${wanted} already`;
    const { status } = await client.call(method, reason === undefined ? {} : { reason }, { id: node.id });
    const again = node.approval === wanted ? " again" : "";
    return `${nodeTitle(node)} ${wanted}${again}${status === "not-ready" ? "; it is not ready yet" : ""}`;
  };
}

async function label(word: string, words: readonly string[], flags: ClusterFlags): Promise<void> {
  const change = readLabelChanges(words);
  await changeNodes([word], flags, async (client, node) => {
    await client.call("setLabels", change, { id: node.id });
    const isSame =
      Object.entries(change.set).every(([key, value]) => node.labels[key] === value) &&
      change.remove.every((key) => !Object.hasOwn(node.labels, key));
    return `${nodeTitle(node)} ${isSame ? "unchanged" : "labelled"}`;
  });
}

async function taint(word: string, words: readonly string[], flags: ClusterFlags): Promise<void> {
  const change = readTaintChanges(words);
  await changeNodes([word], flags, async (client, node) => {
    await client.call("setTaints", change, { id: node.id });
    const has = (wanted: (typeof change.set)[number]) =>
      node.taints.some(
        ({ key, value, effect }) => key === wanted.key && value === wanted.value && effect === wanted.effect,
      );
    const isSame =
      change.set.every(has) && change.remove.every((key) => node.taints.every((found) => found.key !== key));
    return `${nodeTitle(node)} ${isSame ? "unchanged" : "tainted"}`;
  });
}

type RemoveFlags = DecisionFlags & { readonly yes?: boolean };

async function remove(words: readonly string[], { reason, yes = false, ...flags }: RemoveFlags): Promise<void> {
  const { ask } = await openCluster(flags);
  const chosen = await ask((client) => findNodes(client, words));
  for (const node of chosen)
    process.stderr.write(`${nodeTitle(node)}  ${node.status}  last seen ${node.lastSeen || "never"}\n`);
  await requireYes("Remove them for ever? Their certificates are refused from then on", { yes });
  for (const node of chosen) {
    await ask((client) => client.call("removeNode", reason === undefined ? {} : { reason }, { id: node.id }));
    process.stdout.write(`${nodeTitle(node)} removed\n`);
  }
  process.stdout.write(
    [
      "on its machine all stays: agent, units, runtime, mounts, keys; to clear it: kcore orchestrate remove_node NODE",
      "next: take them out of the roster, or let them come back with their data: kcore roster adopt NODE",
      "",
    ].join("\n"),
  );
}
