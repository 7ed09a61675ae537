import { stat } from "node:fs/promises";
import type { Command } from "commander";
import { parsePlainYaml, printYaml } from "#engine/yaml/plain-yaml.ts";
import type { RestoreOptions } from "#controller/restore-state.ts";
import { KcoreError } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import { replaceFile } from "#base/file.ts";
import { reportingBytes, runTask } from "#base/tasks.ts";
import { removeController } from "#pki/contexts.ts";
import { allControllers, askController, type KnownController } from "./all-controllers.ts";
import { requireYes } from "../terminal/ask-operator.ts";
import { shownTasks } from "../terminal/shown-tasks.ts";
import { contextHome } from "../process/kcore-home.ts";
import { openCluster, type Cluster } from "../cluster/open-cluster.ts";
import { requireNew } from "../project/write-asked.ts";
import { addClusterOptions, addProjectOption, addResultOption, type ClusterFlags } from "../options.ts";

type RemoveFlags = ClusterFlags & { readonly reason?: string; readonly yes?: boolean };
type ConfigFlags = { readonly config: string };
type RestoreFlags = ConfigFlags & {
  readonly alone?: boolean;
  readonly cluster?: string;
  readonly output: "table" | "json";
};

/** `kcore controller leave|remove|backup` from the bastion, `found|join|repair|restore` on the controller's machine. */
export function addControllerChanges(controller: Command): void {
  addClusterOptions(controller.command("backup"))
    .description("Write a consistent copy of the cluster's state to a file that only you may read")
    .requiredOption("-o, --out <file>", "the file; it must not exist yet")
    .addHelpText(
      "after",
      "\nExamples:\n  kcore controller backup -o prod-backup\n\nIt is put back by kcore controller restore.",
    )
    .action(backup);
  addClusterOptions(controller.command("leave <controller>"))
    .description("Remove a running controller: it hands over what only it holds, then leaves")
    .option("--yes", "do not ask")
    .addHelpText("after", "\nExamples:\n  kcore controller leave 192.0.2.12:9090")
    .action(leaveCluster);
  addClusterOptions(controller.command("remove <controller>"))
    .description("Remove a dead controller from the list and revoke its key")
    .option("--reason <text>", "kept with the removal")
    .option("--yes", "do not ask")
    .addHelpText(
      "after",
      "\nExamples:\n  kcore controller remove 6f1c2a52 --reason 'burnt'\n\nA controller that still runs leaves by kcore controller leave: then nothing is lost.",
    )
    .action(remove);
  addMachineConfig(controller.command("join [endpoint...]"))
    .description("On its machine, while it is stopped: start empty and copy the state from these controllers")
    .option("--fresh", "put its state and its keys aside first: after it was removed, or copied")
    .addHelpText("after", "\nExamples:\n  kcore controller join --fresh 192.0.2.11:9090")
    .action(
      async (endpoints: readonly string[], { config, fresh = false }: ConfigFlags & { readonly fresh?: boolean }) =>
        say(await (await loadMaintenance()).joinHere(endpoints, { ...machineOptions(config), fresh })),
    );
  addMachineConfig(controller.command("found"))
    .description(
      "On its machine, while it is stopped: begin a NEW cluster with an empty state, which knows no node and no revocation",
    )
    .addHelpText(
      "after",
      "\nExamples:\n  kcore controller found\n\nkcore orchestrate deploy_node does it once, for the first controller of a cluster.\nA controller that lost its state is deployed again instead: it gets the state from the others.",
    )
    .action(async ({ config }: ConfigFlags) => say(await (await loadMaintenance()).foundHere(machineOptions(config))));
  addRestoreOptions(controller.command("repair"))
    .description(
      "On its machine, while it is stopped: recover what is intact of a damaged state, and list what is lost",
    )
    .addHelpText("after", "\nExamples:\n  kcore controller repair\n  kcore controller repair -o json")
    .action(async (flags: RestoreFlags) => say(await (await loadRestore()).repairHere(restoreOptions(flags))));
  addRestoreOptions(controller.command("restore <file>"))
    .description("On its machine, while it is stopped: replace its state with a backup")
    .addHelpText(
      "after",
      "\nExamples:\n  kcore controller restore prod-backup\n  kcore controller restore prod-backup --alone --cluster prod",
    )
    .action(async (file: string, flags: RestoreFlags) =>
      say(await (await loadRestore()).restoreHere(file, restoreOptions(flags))),
    );
}

function addMachineConfig(command: Command): Command {
  return addProjectOption(command).option(
    "--config <file>",
    "the controller's configuration",
    "/etc/kcore/controller.yaml",
  );
}

function addRestoreOptions(command: Command): Command {
  return addResultOption(addMachineConfig(command))
    .option("--alone", "no other controller is left: serve at once, without having caught up with one")
    .option(
      "--cluster <name>",
      "with --alone: the cluster's name; without --cluster the command only says what it would do",
    );
}

/** Loaded when commands on the controller's own machine need them. */
const loadMaintenance = () => import("#controller/found-or-join.ts");
const loadRestore = () => import("#controller/restore-state.ts");

function machineOptions(configFile: string) {
  return { configFile, now: Date.now(), yaml: { parse: parsePlainYaml, print: printYaml } };
}

function restoreOptions({ config, ...flags }: RestoreFlags): RestoreOptions {
  return { alone: false, ...flags, ...machineOptions(config), tasks: shownTasks(flags.output) };
}

function say(lines: readonly string[]): void {
  process.stdout.write(lines.map((line) => `${line}\n`).join(""));
}

async function backup({ out, ...flags }: ClusterFlags & { readonly out: string }): Promise<void> {
  const { ask, context } = await openCluster(flags);
  await requireNew(out);
  // If a controller is lost midway, its part is discarded and the next controller's backup is read from the start.
  await runTask(shownTasks(), `copying the state of the cluster “${context}”`, (say) =>
    ask(async (client) =>
      replaceFile(out, reportingBytes(await client.open("backup", {}), say), { before: () => requireNew(out) }),
    ),
  );
  process.stdout.write(`${out}: ${(await stat(out)).size} bytes, for you alone; it holds no private key\n`);
}

async function leaveCluster(word: string, { yes = false, ...flags }: RemoveFlags): Promise<void> {
  const cluster = await openCluster(flags);
  const found = findController(await allControllers(cluster), word);
  await requireYes(`Shall controller ${controllerTitle(found)} leave the cluster?`, { yes });
  await askController(found, cluster, (client) => client.call("leave", {}), { timeoutMs: 60_000 });
  await forget(found, cluster);
  process.stdout.write(
    `${controllerTitle(found)} left\nnext, on its machine: systemctl disable --now kcore-controller\n`,
  );
}

async function remove(word: string, { reason, yes = false, ...flags }: RemoveFlags): Promise<void> {
  const cluster = await openCluster(flags);
  const all = await allControllers(cluster);
  const found = findController(all, word);
  const { controllerId } = found.controller;
  const other =
    all.find(({ controller }) => controller.controllerId !== controllerId && controller.state === "self") ??
    all.find(({ controller }) => controller.controllerId !== controllerId);
  if (!other)
    throw new KcoreError({
      code: "CLUSTER_UNHEALTHY",
      message: `${controllerTitle(found)} is the only controller`,
      hint: "deploy another one first",
    });
  await requireYes(`Remove controller ${controllerTitle(found)}? Writes that only it has are lost`, { yes });
  const body = reason === undefined ? {} : { reason };
  await askController(other, cluster, (client) => client.call("removeController", body, { id: controllerId }));
  await forget(found, cluster);
  process.stdout.write(
    `${controllerTitle(found)} removed; it must begin anew to come back: kcore controller join --fresh\n`,
  );
}

/** Removes the controller's endpoints from the context. */
async function forget({ endpoints }: KnownController, { context }: Cluster): Promise<void> {
  for (const endpoint of endpoints) await removeController(contextHome(), context, endpoint);
}

function controllerTitle({ controller: { controllerId, address } }: KnownController): string {
  return address === "" ? controllerId : `${address} (${controllerId})`;
}

/** The controller of this id, beginning of an id, or endpoint with or without port. @throws KcoreError CONTROLLER_UNKNOWN */
function findController(all: readonly KnownController[], word: string): KnownController {
  const found = all.filter(
    ({ controller: { controllerId }, endpoints }) =>
      controllerId === word ||
      (word.length >= 4 && controllerId.startsWith(word)) ||
      endpoints.some((endpoint) => endpoint === word || endpoint.replace(/:\d+$/, "") === word),
  );
  const [only] = found;
  if (only && found.length === 1) return only;
  const names = all.flatMap(({ controller: { controllerId }, endpoints }) => [controllerId, ...endpoints]);
  throw new KcoreError({
    code: "CONTROLLER_UNKNOWN",
    message: only ? `“${word}” fits ${found.length} controllers` : `the cluster has no controller “${word}”`,
    hint: only ? "give the whole id" : (suggestHint(word, names, "kcore get controllers") ?? ""),
  });
}
