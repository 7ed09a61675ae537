import { Command } from "commander";
import {
  addClusterOptions,
  addProjectOption,
  addResultOption,
  allFormats,
  caPassphrase,
  collect,
  type ResultFormat,
} from "../options.ts";
import type { ApplyUpdateFlags, PlanUpdateFlags } from "./apply-updates.ts";
import type { BuildFlags, BundleFlags } from "./bundles.ts";
import type { ChangeFlags, GetUpdateFlags } from "./change-update.ts";
import type { FollowFlags } from "./follow-update.ts";
import type { NameFlags } from "./ask-updates.ts";

/** `kcore update cluster …` and `kcore update bundle build|show`. */
export function updateCommand(): Command {
  const update = new Command("update").description("Roll a new version out over the cluster").addHelpText(
    "after",
    `
Examples:
  kcore update cluster plan -f rollout.yaml
  kcore update cluster list
  kcore update bundle build`,
  );
  update.addCommand(updateClusterCommand());
  update.addCommand(bundleCommand());
  return update;
}

function bundleCommand(): Command {
  const bundle = new Command("bundle").description("The runtime of one version of kcore, as one file").addHelpText(
    "after",
    `
A bundle is what nodes run: Node, its libraries and kcore's daemons, closed in itself. This kcore's own is built and found without
being asked for; build one on a machine with another version, or of another architecture, to take it along.

Examples:
  kcore update bundle build
  kcore update bundle show kcore-0.9.0-x86_64.bundle`,
  );
  addResultOption(addProjectOption(bundle.command("build")))
    .description("Write the runtime of this kcore, for machines of this architecture, to a file")
    .option("--out <file>", "where to; else kcore-VERSION-ARCH.bundle in this folder")
    .addHelpText(
      "after",
      "\nExamples:\n  kcore update bundle build\n  kcore update bundle build --out /tmp/kcore.bundle\n  kcore update bundle build -o json",
    )
    .action(async (flags: BuildFlags) => (await import("./bundles.ts")).buildBundle(flags));
  addResultOption(addProjectOption(bundle.command("show <file>")))
    .description("Verify a bundle file and show what it holds")
    .addHelpText(
      "after",
      `
Examples:
  kcore update bundle show kcore-0.9.0-x86_64.bundle
  kcore update bundle show kcore-0.9.0-x86_64.bundle -o json

A file that is damaged, or holds something else than it says, is refused (UPDATE_BUNDLE_INVALID).`,
    )
    .action(async (file: string, flags: BundleFlags) => (await import("./bundles.ts")).showBundle(file, flags));
  return bundle;
}

type OptionName = "name" | "file" | "bundle" | "again" | "passphrase" | "watch" | "output" | "yes";

/** One command of `kcore update cluster`. */
interface Verb {
  readonly verb: string;
  readonly alias?: string;
  readonly parts: readonly OptionName[];
  readonly about: string;
  readonly options?: readonly (readonly [flags: string, description: string])[];
  readonly examples: readonly string[];
  readonly more?: string;
  readonly run: (name: string | undefined, flags: never) => Promise<void>;
}

const changes = async () => import("./change-update.ts");

const verbs: readonly Verb[] = [
  {
    verb: "plan",
    parts: ["name", "file", "bundle", "again", "output"],
    about: "Show what an update would do to each node, and what blocks it; changes nothing",
    examples: [
      "plan -f rollout.yaml",
      "plan -f rollout.yaml -o json",
      "plan release-0-4-0        the one that stands, as it would be now",
    ],
    more: "Exits 1 when it cannot be carried out as the cluster is now.",
    run: async (name, flags: PlanUpdateFlags) => (await import("./apply-updates.ts")).planUpdates(name, flags),
  },
  {
    verb: "get",
    parts: ["name", "file", "watch", "passphrase", "output"],
    about: "Show an update and how far each of its nodes is",
    examples: ["get release-0-4-0", "get release-0-4-0 -w", "get -f rollout.yaml -o json"],
    more: "With -w it ends with the rollout: 0 if it succeeded, or was taken back at a request; else 1.",
    run: async (name, flags: GetUpdateFlags) => (await changes()).showUpdate(name, flags),
  },
  {
    verb: "list",
    parts: ["watch", "output"],
    about: "List updates, the newest first",
    examples: ["list", "list -o wide", "list -w"],
    run: async (_, flags: GetUpdateFlags) => (await changes()).listUpdates(flags),
  },
  {
    verb: "apply",
    parts: ["file", "bundle", "again", "passphrase", "watch", "output"],
    about: "Sign an update and hand it over to the cluster: created, updated or unchanged",
    examples: [
      "apply -f rollout.yaml",
      "apply -f rollout.yaml --bundle kcore-0.9.0-x86_64.bundle",
      "apply -f rollout.yaml -w",
      "apply -f rollout.yaml --again",
    ],
    more: `The same manifest again is unchanged, another one of that name its next generation, which is approved anew. kcore's runtime is found
among those that were built here, unless --bundle gives it; it is brought to one controller, and goes on where it broke off.`,
    run: async (_, flags: ApplyUpdateFlags) => (await import("./apply-updates.ts")).applyUpdates(flags),
  },
  {
    verb: "approve",
    parts: ["name", "file", "yes", "watch", "passphrase", "output"],
    about: "Approve an update as it is now: this generation, this manifest, these nodes",
    options: [["--hash <hash>", "approve only an update with this hash, of which eight characters are enough"]],
    examples: ["approve release-0-4-0", "approve release-0-4-0 --hash 3f9a1c2e77d0", "approve release-0-4-0 --yes -w"],
    run: async (name, flags: ChangeFlags & { readonly hash?: string }) => (await changes()).approveUpdate(name, flags),
  },
  {
    verb: "promote",
    parts: ["name", "file", "watch", "passphrase", "output"],
    about: "Continue with the other nodes after the canaries",
    examples: ["promote release-0-4-0", "promote release-0-4-0 -w"],
    run: async (name, flags: ChangeFlags) => (await changes()).promoteUpdate(name, flags),
  },
  {
    verb: "cancel",
    parts: ["name", "file", "watch", "passphrase", "output"],
    about: "Start no further node; an activation is never interrupted",
    examples: ["cancel release-0-4-0", "cancel release-0-4-0 -w"],
    run: async (name, flags: ChangeFlags) => (await changes()).cancelUpdate(name, flags),
  },
  {
    verb: "rollback",
    parts: ["name", "file", "yes", "watch", "passphrase", "output"],
    about: "Roll nodes back to what they ran before, in reverse order",
    options: [["--now", "go on though more nodes are down than may be"]],
    examples: ["rollback release-0-4-0", "rollback release-0-4-0 --yes -w", "rollback release-0-4-0 --now"],
    run: async (name, flags: ChangeFlags & { readonly now?: boolean }) => (await changes()).rollBackUpdate(name, flags),
  },
  {
    verb: "takeover",
    parts: ["name", "file", "watch", "passphrase", "output"],
    about: "Hand an update to another controller when its owner is gone",
    examples: ["takeover release-0-4-0", "takeover release-0-4-0 -s 192.0.2.12"],
    more: `The controller that is asked becomes the owner: the first of the context that answers, or -s HOST. The bastion signs that, with the
passphrase of the CA's keys.`,
    run: async (name, flags: ChangeFlags) => (await changes()).takeOverUpdate(name, flags),
  },
  {
    verb: "run-hooks",
    alias: "attend",
    parts: ["name", "file", "passphrase", "output"],
    about: "Run what a rollout needs from the bastion: the states and commands of its drains and gates",
    examples: ["run-hooks release-0-4-0", "run-hooks -f rollout.yaml"],
    more: `-w of the other commands does it, too, in a project. States are applied as kcore state apply does, and leave a record; commands run in the
project's folder with KCORE_NODE, KCORE_NODE_ID and KCORE_ADDRESS. Of two bastions the first answer counts. kcore update cluster attend is the same.`,
    run: async (name, flags: FollowFlags & NameFlags) =>
      (await import("./follow-update.ts")).runUpdateHooks(name, flags),
  },
  {
    verb: "remove",
    parts: ["name", "file", "yes", "output"],
    about: "Remove an update that is over from the list; nodes stay as they are",
    examples: ["remove release-0-4-0", "remove release-0-4-0 --yes"],
    more: `It cannot be rolled back then, and its name is never used again. An update that is not over stays, and so does the last one of a node.
Controllers remove by themselves what is over beyond the newest 20, or for a year.`,
    run: async (name, flags: ChangeFlags) => (await changes()).removeUpdate(name, flags),
  },
];

/** `kcore update cluster …`, `os` for short. */
function updateClusterCommand(): Command {
  const cluster = new Command("cluster")
    .alias("os")
    .description("Roll a version out over the cluster's nodes, as a manifest of kind ClusterUpdate says")
    .addHelpText(
      "after",
      `
Examples:
  kcore update cluster plan -f rollout.yaml          what it would do, and what keeps it from being done
  kcore update cluster apply -f rollout.yaml
  kcore update cluster approve release-0-4-0         unless its approvalPolicy lets it begin by itself
  kcore update cluster get release-0-4-0 -w          node by node, until it ends
  kcore update cluster cancel release-0-4-0          no node is begun any more; none is interrupted
  kcore update cluster rollback release-0-4-0        back to what nodes ran before, the last one first
  kcore update cluster list
  kcore update cluster remove release-0-4-0          one that is over leaves the list

An update is named by its name, or by -f FILE with its manifest. kcore update os is the same.`,
    );
  for (const verb of verbs) addVerb(cluster, verb);
  return cluster;
}

function addVerb(cluster: Command, { verb, alias, parts, about, options = [], examples, more, run }: Verb): void {
  const has = (part: OptionName): boolean => parts.includes(part);
  const made = addClusterOptions(cluster.command(has("name") ? `${verb} [name]` : verb)).description(about);
  if (alias !== undefined) made.alias(alias);
  if (has("file"))
    made.option("-f, --filename <file>", "a file with its manifest, or - for stdin (repeatable)", collect);
  if (has("bundle")) made.option("--bundle <file>", "the bundle of kcore's runtime (kcore update bundle build)");
  if (has("again")) made.option("--again", "also where the same manifest has come to its end: as its next generation");
  if (has("passphrase")) made.option(...caPassphrase);
  if (has("yes")) made.option("--yes", "do not ask");
  if (has("watch"))
    made.option(
      "-w, --watch",
      verb === "list" ? "go on, and show what changes" : "follow the rollout until it ends, node by node",
    );
  addResultOption(made, allFormats satisfies readonly ResultFormat[]);
  for (const option of options) made.option(...option);
  const lines = examples.map((one) => `\n  kcore update cluster ${one}`).join("");
  made.addHelpText("after", `\nExamples:${lines}${more === undefined ? "" : `\n\n${more}`}`);
  made.action((...given: readonly unknown[]) =>
    run(has("name") ? (given[0] as string | undefined) : undefined, given.at(-2) as never),
  );
}
