import { Command } from "commander";
import type { UnlockFlags } from "../adhoc/unlock-nodes.ts";
import { addProjectOption } from "../options.ts";
import { addNodeChanges } from "./node-changes.ts";
import { addNodeHardware, addNodeInstall } from "../install/install-command.ts";

/** `kcore node …`. */
export function nodeCommand(): Command {
  const node = new Command("node").description("The cluster's nodes");
  addNodeInstall(node);
  addNodeHardware(node);
  addNodeChanges(node);
  addProjectOption(node.command("unlock <target>"))
    .description("Free nodes that a finished or dead run still holds; says whose run it is, and asks")
    .option("--yes", "do not ask")
    .addHelpText("after", "\nExamples:\n  kcore node unlock n1\n  kcore node unlock 'role:worker' --yes")
    .action(async (target: string, flags: UnlockFlags) =>
      (await import("../adhoc/unlock-nodes.ts")).unlockNodes(target, flags),
    );
  return node;
}
