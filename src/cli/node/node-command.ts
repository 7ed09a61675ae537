import { Command } from "commander";
import type { ApiClient } from "#api/client.ts";
import type { NodeView, Taint } from "#api/schemas.ts";
import { Problems } from "#engine/yaml/problems.ts";
import { usageError } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import type { UnlockFlags } from "../adhoc/unlock-nodes.ts";
import { addProjectOption, addClusterOptions, type ClusterFlags } from "../options.ts";
import { addNodeHardware, addNodeInstall } from "../install/install-command.ts";
import { changeNodes, nodeTitle, findNodes } from "./find-node.ts";
import { requireYes } from "../terminal/ask-operator.ts";
import { openCluster } from "../cluster/open-cluster.ts";
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

const keyPattern = /^[A-Za-z0-9][A-Za-z0-9._/-]{0,252}$/;

/** `k=v` sets a label, `k-` takes it away. @throws KcoreError USAGE with every problem */
export function readLabelChanges(words: readonly string[]): { set: Record<string, string>; remove: string[] } {
  const set: [key: string, value: string][] = [];
  const remove: string[] = [];
  collectProblems(words, (word) => {
    const equals = word.indexOf("=");
    if (equals > 0) set.push([checkedKey(word.slice(0, equals), word), word.slice(equals + 1)]);
    else if (word.endsWith("-")) remove.push(checkedKey(word.slice(0, -1), word));
    else throw usageError(`“${word}” is no change of a label`, "key=value sets it, key- takes it away");
  });
  checkOnce([...set.map(([key]) => key), ...remove], words);
  return { set: Object.fromEntries(set), remove };
}

const effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"] as const;

/** `k=v:Effect` and `k:Effect` set a taint, `k-` takes it away. @throws KcoreError USAGE with every problem */
export function readTaintChanges(words: readonly string[]): { set: Taint[]; remove: string[] } {
  const set: Taint[] = [];
  const remove: string[] = [];
  collectProblems(words, (word) => {
    const colon = word.lastIndexOf(":");
    if (colon < 0 && word.endsWith("-")) {
      remove.push(checkedKey(word.slice(0, -1), word));
      return;
    }
    const given = word.slice(colon + 1);
    const effect = effects.find((known) => known === given);
    if (colon < 0)
      throw usageError(`“${word}” names no effect`, `key=value:${effects.join("|")} sets a taint, key- takes it away`);
    if (!effect)
      throw usageError(
        `“${given}” is no effect of a taint`,
        suggestHint(given, effects, `one of ${effects.join(", ")}`),
      );
    const [key = "", ...rest] = word.slice(0, colon).split("=");
    set.push({ key: checkedKey(key, word), value: rest.join("="), effect });
  });
  checkOnce([...set.map(({ key }) => key), ...remove], words);
  return { set, remove };
}

function collectProblems(words: readonly string[], read: (word: string) => void): void {
  const problems = new Problems();
  for (const word of words) problems.attempt(() => read(word));
  problems.throwIfAny();
}

function checkedKey(key: string, word: string): string {
  if (keyPattern.test(key)) return key;
  throw usageError(
    `“${key}” in “${word}” is no key`,
    "letters, digits, “.”, “_”, “/” and “-”, beginning with a letter or digit",
  );
}

function checkOnce(keys: readonly string[], words: readonly string[]): void {
  const twice = keys.find((key, index) => keys.indexOf(key) !== index);
  if (twice !== undefined) throw usageError(`“${words.join(" ")}” changes ${twice} twice`, "say it once");
}
