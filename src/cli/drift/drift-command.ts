import { Command, Option } from "commander";
import { usageError } from "#errors/problem.ts";
import { addResultOption, parseAge } from "../options.ts";
import { addRunOptions } from "../watch/run-options.ts";
import type { DriftFlags } from "./find-drift.ts";

/** `kcore drift [NAME…]`. */
export function driftCommand(): Command {
  const command = new Command("drift")
    .description(
      "Show the differences between nodes and project, by node and step, changing nothing; --since shows earlier ones",
    )
    .argument(
      "[names...]",
      "an orchestration or states; else the work of reconcile in kcore.yaml, else the last work of each node",
    );
  addRunOptions(command, { full: false }).addOption(
    new Option(
      "--since <age>",
      "the differences of all nodes found since then, without a connection: 12h, 7d",
    ).argParser(parseAge),
  );
  return addResultOption(command)
    .addHelpText(
      "after",
      `
Examples:
  kcore drift
  kcore drift --on 'role:web' -o json
  kcore drift web --on n1
  kcore drift --since 7d

Exit codes: 0 nothing differs, 4 a step differs or cannot be told, 1 a node failed, 3 only unreachable nodes.`,
    )
    .action(async (names: readonly string[], { since, ...flags }: DriftFlags & { readonly since?: number }) => {
      if (since !== undefined) {
        if (names.length > 0 || flags.on !== undefined)
          throw usageError("--since shows the differences of all nodes and works", "leave names and --on out");
        return (await import("./drift-history.ts")).printHistory(Date.now() - since, flags);
      }
      process.exitCode = await (await import("./find-drift.ts")).findDrift(names, flags);
    });
}
