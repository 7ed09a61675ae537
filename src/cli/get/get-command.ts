import { Command, InvalidArgumentError, Option } from "commander";
import {
  certificateListing,
  conflictListing,
  controllerListing,
  largestPage,
  nodeListing,
  type CertificateFlags,
  type PageFlags,
  type SelectorFlags,
} from "./listings.ts";
import { recordListing, vmListing } from "./record-listings.ts";
import { findNode } from "../node/find-node.ts";
import { type Listing, showListing } from "./show-listing.ts";
import { showReplicationStatus } from "./replication-status.ts";
import { openCluster } from "../cluster/open-cluster.ts";
import {
  addClusterOptions,
  addResultOption,
  allFormats,
  collect,
  type ClusterFlags,
  type ResultFormat,
} from "../options.ts";
import { printResult } from "../terminal/format-result.ts";

type ListFlags = ClusterFlags & { readonly output: ResultFormat; readonly watch?: boolean };

/** `kcore get …`. */
export function getCommand(): Command {
  const get = new Command("get")
    .description("List nodes, controllers, certificates and conflicts of the cluster")
    .addHelpText(
      "after",
      `
Examples:
  kcore get nodes
  kcore get nodes -l tier=ssd,!old --dc DC2 -o wide
  kcore get nodes --limit 100 --after n0100       the next hundred of many
  kcore get nodes -w                              go on, and show what changes
  kcore get node n1 -o yaml                       all that is known of one node
  kcore -s 192.0.2.11 -s 192.0.2.12 get nodes     the second is asked when the first cannot be reached
  kcore get controllers
  kcore get conflicts
  kcore get vms --dc DC1                          recorded VMs, and their nodes
  kcore get certificates --expiring-within-days 30
  kcore get replication-status --require-healthy  exits 1 unless all controllers are

Names: a node's id, its host name, or the beginning of its id (four characters at least).`,
    );
  addSelection(addListOptions(get.command("nodes [node...]"), "get nodes -l tier=ssd -o wide"), "nodes")
    .description("List nodes: all of them, or those named")
    .addOption(new Option("--limit <count>", "at most so many, in the order of their names").argParser(parseLimit))
    .option("--after <name>", "with --limit: those after this node, NAME or NAME/ID")
    .action((words: readonly string[], flags: ListFlags & SelectorFlags & PageFlags) =>
      list(nodeListing(words, flags), flags),
    );
  addClusterResult(get.command("node <node>"), "get node n1 -o yaml")
    .description("One node; with -o json or yaml all that is known of it")
    .action(getNode);
  addListOptions(get.command("controllers"), "get controllers")
    .description("List controllers, as the one that answers sees them")
    .action((flags: ListFlags) => list(controllerListing, flags));
  addListOptions(get.command("conflicts"), "get conflicts -o json")
    .description("List concurrent edits of one thing, and node names used twice")
    .action((flags: ListFlags) => list(conflictListing, flags));
  addSelection(addListOptions(get.command("vms [name...]"), "get vms --dc DC1 -l tier=web"), "VMs")
    .description("List recorded VMs with their nodes: all, or those named. kcore runs none of them")
    .action((names: readonly string[], flags: ListFlags & SelectorFlags) => list(vmListing(names, flags), flags));
  for (const kind of ["Network", "Image"] as const) {
    const words = `${kind.toLowerCase()}s`;
    addListOptions(get.command(`${words} [name...]`), `get ${words} -o yaml`)
      .description(`List recorded ${words} of VMs: all, or those named`)
      .action((names: readonly string[], flags: ListFlags) => list(recordListing(kind, names), flags));
  }
  addListOptions(get.command("certificates"), "get certificates --expiring-within-days 30")
    .description("List the certificates that were issued")
    .option("--node <node>", "only those of this node; also the id of a controller or operator")
    .addOption(new Option("--status <status>", "only these").choices(["active", "expired", "revoked"]))
    .addOption(new Option("--expiring-within-days <days>", "only active ones that expire soon").argParser(parseDays))
    .action((flags: ListFlags & CertificateFlags) => list(certificateListing(flags), flags));
  addResultOption(addClusterOptions(get.command("replication-status")), ["table", "json", "yaml"])
    .description("Show how far the controllers have replicated, as each of them sees it")
    .option("--require-healthy", "exit 1 unless every controller is healthy")
    .addHelpText("after", exampleOf("get replication-status --require-healthy"))
    .action(showReplicationStatus);
  return get;
}

function exampleOf(words: string): string {
  return `\nExamples:\n  kcore ${words}`;
}

function addClusterResult(command: Command, example: string): Command {
  return addResultOption(addClusterOptions(command), allFormats).addHelpText("after", exampleOf(example));
}

function addListOptions(command: Command, example: string): Command {
  return addClusterResult(command, example).option("-w, --watch", "go on, and show what changes");
}

function addSelection(command: Command, what: string): Command {
  return command
    .option("-l, --selector <labels>", `only ${what} with these labels: k=v, k!=v, k, !k (commas, repeatable)`, collect)
    .option("--dc <name>", `only ${what} of this datacenter (repeatable)`, collect);
}

function parseLimit(text: string): number {
  if (/^\d{1,3}$/.test(text) && Number(text) > 0) return Number(text);
  throw new InvalidArgumentError(`a number from 1 to ${largestPage - 1}`);
}

function parseDays(text: string): number {
  if (/^\d{1,4}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("a number of days");
}

async function list<Item extends object>(
  listing: Listing<Item>,
  { output, watch = false, ...flags }: ListFlags,
): Promise<void> {
  await showListing(await openCluster(flags), listing, { output, watch });
}

async function getNode(word: string, { output, ...flags }: ListFlags): Promise<void> {
  const cluster = await openCluster(flags);
  if (output === "table" || output === "wide") return showListing(cluster, nodeListing([word], flags), { output });
  const node = await cluster.ask(async (client) =>
    client.call("getNode", {}, { id: (await findNode(client, word)).id }),
  );
  printResult(node, output);
}
