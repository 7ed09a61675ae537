import type { Command } from "commander";
import type { WorkChange } from "#engine/orchestrate/project-hooks.ts";
import { addProjectOption, addViewOptions } from "../options.ts";
import { addChangeOptions } from "../watch/run-options.ts";
import type { WorkFlags } from "./change-work.ts";

/** `kcore node drain|undrain|cordon|uncordon`. */
export function addNodeWork(node: Command): void {
  addChange(node, "drain", "Take the work away from nodes, one after the other");
  addChange(node, "undrain", "Let work come back to nodes, once they are ready");
  addChange(node, "cordon", "Let no new work come to nodes; present work stays");
  addChange(node, "uncordon", "Let new work come to nodes again");
}

function addChange(node: Command, to: WorkChange, description: string): void {
  addViewOptions(addChangeOptions(addProjectOption(node.command(`${to} <node...>`))))
    .description(description)
    .option("--wait", "wait for a node that another run holds instead of refusing")
    .addHelpText(
      "after",
      `\nExamples:\n  kcore node ${to} n1\n  kcore node ${to} n1 n2 --dry-run\n\nkcore.yaml of the project says how, under drain: a state, a command, or Kubernetes.`,
    )
    .action(async (words: readonly string[], flags: WorkFlags) => {
      const { changeWork } = await import("./change-work.ts");
      process.exitCode = await changeWork(to, words, flags);
    });
}
