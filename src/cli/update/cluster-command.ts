import { Command } from "commander";
import {
  addClusterOptions,
  addResultOption,
  allFormats,
  caPassphrase,
  collect,
  type ResultFormat,
} from "../options.ts";
import type { ApplyFlags } from "./apply-command.ts";
import type { ChangeFlags } from "./change-commands.ts";
import type { AttendFlags } from "./follow-command.ts";
import type { LookFlags } from "./look-commands.ts";
import type { PlanFlags } from "./plan-command.ts";

type Part = "name" | "file" | "bundle" | "again" | "passphrase" | "watch" | "output" | "yes";

/** `kcore update cluster …`, `os` for short. */
export function clusterCommand(): Command {
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
  addLooks(cluster);
  addChanges(cluster);
  addOwnership(cluster);
  addRemoval(cluster);
  return cluster;
}

function addLooks(cluster: Command): void {
  command(cluster, "plan", ["name", "file", "bundle", "again", "output"])
    .description("Show what an update would do to each node, and what blocks it; changes nothing")
    .addHelpText(
      "after",
      examples(
        [
          "plan -f rollout.yaml",
          "plan -f rollout.yaml -o json",
          "plan release-0-4-0        the one that stands, as it would be now",
        ],
        "Exits 1 when it cannot be carried out as the cluster is now.",
      ),
    )
    .action(async (name: string | undefined, flags: PlanFlags) =>
      (await import("./plan-command.ts")).planUpdates(name, flags),
    );
  command(cluster, "get", ["name", "file", "watch", "passphrase", "output"])
    .description("Show an update and how far each of its nodes is")
    .addHelpText(
      "after",
      examples(
        ["get release-0-4-0", "get release-0-4-0 -w", "get -f rollout.yaml -o json"],
        "With -w it ends with the rollout: 0 if it succeeded, or was taken back because somebody asked for that; else 1.",
      ),
    )
    .action(async (name: string | undefined, flags: LookFlags) =>
      (await import("./look-commands.ts")).showUpdate(name, flags),
    );
  command(cluster, "list", ["watch", "output"], "go on, and show what changes")
    .description("List updates, the newest first")
    .addHelpText("after", examples(["list", "list -o wide", "list -w"]))
    .action(async (flags: LookFlags) => (await import("./look-commands.ts")).listUpdates(flags));
}

function addChanges(cluster: Command): void {
  command(cluster, "apply", ["file", "bundle", "again", "passphrase", "watch", "output"])
    .description("Sign an update and hand it over to the cluster: created, updated or unchanged")
    .addHelpText(
      "after",
      examples(
        [
          "apply -f rollout.yaml",
          "apply -f rollout.yaml --bundle kcore-0.9.0-x86_64.bundle",
          "apply -f rollout.yaml -w",
          "apply -f rollout.yaml --again",
        ],
        `The same manifest again is unchanged, another one of that name its next generation, which is approved anew. kcore's runtime is found
among those that were built here, unless --bundle gives it; it is brought to one controller, and goes on where it broke off.`,
      ),
    )
    .action(async (flags: ApplyFlags) => (await import("./apply-command.ts")).applyUpdates(flags));
  command(cluster, "approve", ["name", "file", "yes", "watch", "passphrase", "output"])
    .description("Approve an update as it is now: this generation, this manifest, these nodes")
    .option("--hash <hash>", "only if this is what would be approved: eight characters of it at least")
    .addHelpText(
      "after",
      examples([
        "approve release-0-4-0",
        "approve release-0-4-0 --hash 3f9a1c2e77d0",
        "approve release-0-4-0 --yes -w",
      ]),
    )
    .action(async (name: string | undefined, flags: ChangeFlags & { readonly hash?: string }) =>
      (await import("./change-commands.ts")).approveUpdate(name, flags),
    );
  command(cluster, "promote", ["name", "file", "watch", "passphrase", "output"])
    .description("Continue with the other nodes after the canaries")
    .addHelpText("after", examples(["promote release-0-4-0", "promote release-0-4-0 -w"]))
    .action(async (name: string | undefined, flags: ChangeFlags) =>
      (await import("./change-commands.ts")).promoteUpdate(name, flags),
    );
  command(cluster, "cancel", ["name", "file", "watch", "passphrase", "output"])
    .description("Start no further node; an activation is never interrupted")
    .addHelpText("after", examples(["cancel release-0-4-0", "cancel release-0-4-0 -w"]))
    .action(async (name: string | undefined, flags: ChangeFlags) =>
      (await import("./change-commands.ts")).cancelUpdate(name, flags),
    );
  command(cluster, "rollback", ["name", "file", "yes", "watch", "passphrase", "output"])
    .description("Roll nodes back to what they ran before, in reverse order")
    .option("--now", "go on though more nodes are down than may be")
    .addHelpText(
      "after",
      examples(["rollback release-0-4-0", "rollback release-0-4-0 --yes -w", "rollback release-0-4-0 --now"]),
    )
    .action(async (name: string | undefined, flags: ChangeFlags & { readonly now?: boolean }) =>
      (await import("./change-commands.ts")).rollBackUpdate(name, flags),
    );
}

function addRemoval(cluster: Command): void {
  command(cluster, "remove", ["name", "file", "yes", "output"])
    .description("Remove an update that is over from the list; nodes stay as they are")
    .addHelpText(
      "after",
      examples(
        ["remove release-0-4-0", "remove release-0-4-0 --yes"],
        `It cannot be rolled back then, and its name is never used again. An update that is not over stays, and so does the last one of a node.
Controllers remove by themselves what is over beyond the newest 20, or for a year.`,
      ),
    )
    .action(async (name: string | undefined, flags: ChangeFlags) =>
      (await import("./change-commands.ts")).removeUpdate(name, flags),
    );
}

function addOwnership(cluster: Command): void {
  command(cluster, "takeover", ["name", "file", "watch", "passphrase", "output"])
    .description("Hand an update to another controller when its owner is gone")
    .addHelpText(
      "after",
      examples(
        ["takeover release-0-4-0", "takeover release-0-4-0 -s 192.0.2.12"],
        `The controller that is asked becomes the owner: the first of the context that answers, or -s HOST. The bastion signs that, with the
passphrase of the CA's keys.`,
      ),
    )
    .action(async (name: string | undefined, flags: ChangeFlags) =>
      (await import("./takeover-command.ts")).takeOverUpdate(name, flags),
    );
  command(cluster, "attend", ["name", "file", "passphrase", "output"])
    .description("Run what a rollout needs from the bastion: the states and commands of its drains and gates")
    .addHelpText(
      "after",
      examples(
        ["attend release-0-4-0", "attend -f rollout.yaml"],
        `-w of the other commands does it, too, in a project. States are applied as kcore state apply does, and leave a record; commands run in the
project's folder with KCORE_NODE, KCORE_NODE_ID and KCORE_ADDRESS. Where two attend to one rollout, the first answer counts.`,
      ),
    )
    .action(async (name: string | undefined, flags: AttendFlags) =>
      (await import("./follow-command.ts")).attendUpdate(name, flags),
    );
}

function command(
  cluster: Command,
  verb: string,
  parts: readonly Part[],
  watch = "follow the rollout until it ends, node by node",
): Command {
  const made = addClusterOptions(cluster.command(parts.includes("name") ? `${verb} [name]` : verb));
  const has = (part: Part): boolean => parts.includes(part);
  if (has("file"))
    made.option("-f, --filename <file>", "a file with its manifest, or - for what comes in (repeatable)", collect);
  if (has("bundle")) made.option("--bundle <file>", "the bundle of kcore's runtime (kcore update bundle build)");
  if (has("again")) made.option("--again", "also where the same manifest has come to its end: as its next generation");
  if (has("passphrase")) made.option(...caPassphrase);
  if (has("yes")) made.option("--yes", "do not ask");
  if (has("watch")) made.option("-w, --watch", watch);
  return addResultOption(made, allFormats satisfies readonly ResultFormat[]);
}

function examples(words: readonly string[], text?: string): string {
  const lines = words.map((one) => `\n  kcore update cluster ${one}`).join("");
  return `\nExamples:${lines}${text === undefined ? "" : `\n\n${text}`}`;
}
