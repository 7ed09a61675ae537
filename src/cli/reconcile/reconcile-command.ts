import { Command, Option } from "commander";
import { addProjectOption, addResultOption, caPassphrase } from "../options.ts";
import type { ReconcileFlags } from "./apply-differences.ts";

interface Flags extends ReconcileFlags {
  readonly install?: boolean;
  readonly uninstall?: boolean;
}

/** `kcore reconcile`. */
export function reconcileCommand(): Command {
  const command = addProjectOption(new Command("reconcile"))
    .description(
      "One pass: fetch the branch, verify its commit, compare the nodes, apply the differences within the limits of kcore.yaml",
    )
    .option(...caPassphrase)
    .option("--install", "let a timer of systemd make passes")
    .addOption(new Option("--uninstall", "remove that timer").conflicts("install"));
  return addResultOption(command)
    .addHelpText(
      "after",
      `
Examples:
  kcore reconcile
  kcore reconcile -o json
  sudo kcore reconcile --install
  sudo kcore reconcile --uninstall

docs/gitops.md has the settings. A notice of notify.yaml tells once each thing that needs a person.

Exit codes: 0 in order or applied, 1 a commit was refused or a node failed, 3 nodes are down, 4 a person has to decide.`,
    )
    .action(async ({ install = false, uninstall = false, ...flags }: Flags) => {
      if (!install && !uninstall) return (await import("./reconcile.ts")).reconcile(flags);
      await (await import("./timer-units.ts")).setTimer(flags.project, install);
    });
}
