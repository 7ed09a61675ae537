import { Command } from "commander";
import { addProjectOption, addResultOption } from "../options.ts";
import { clusterCommand } from "./cluster-command.ts";
import type { BundleFlags, BuildFlags } from "./bundle-commands.ts";

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
  update.addCommand(clusterCommand());
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
    .action(async (flags: BuildFlags) => (await import("./bundle-commands.ts")).buildBundle(flags));
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
    .action(async (file: string, flags: BundleFlags) => (await import("./bundle-commands.ts")).showBundle(file, flags));
  return bundle;
}
