import { Argument, Command } from "commander";
import { addResultOption, collect } from "../options.ts";
import { addRunOptions, reportOption } from "../watch/run-options.ts";
import type { RunFlags } from "../watch/run-request.ts";

/** The topics of orchestrate/validate.yaml that are asked unless some are named. */
const usualTopics = ["machine", "network", "storage", "cluster", "monitoring", "gitops"];

interface ValidateFlags extends RunFlags {
  readonly output: "table" | "json";
  readonly set?: readonly string[];
}

/** `kcore validate [TOPIC…]`. */
export function validateCommand(): Command {
  const command = new Command("validate")
    .description("Check machines before a deployment, and members after it; change nothing")
    .addArgument(
      new Argument("[topic...]", `${usualTopics.join(", ")}; all of these unless named`).choices([
        ...usualTopics,
        "services",
      ]),
    );
  addResultOption(addRunOptions(command, { full: false }))
    .addOption(reportOption())
    .option("--set <name=value>", "a parameter of the checks (repeatable): kcore orchestrate show validate", collect)
    .addHelpText(
      "after",
      `
Examples:
  kcore validate
  kcore validate --on 'role:worker' machine network --set memory=8G --set swap=off
  kcore validate network --set 'ports={controller: [9090], etcd: [2379, 2380]}'
  kcore validate --report checks.xml --report checks.html -o json

Every check runs even if another one fails, and is in the result. It ends with 1 if one failed, and with 3 if a node could not be
reached. The checks are steps of states/validate; docs/validate.md shows how to write one.`,
    )
    .action(validate);
  return command;
}

async function validate(topics: readonly string[], { output, set, ...flags }: ValidateFlags): Promise<void> {
  const { rowAsData, runChecks } = await import("./run-checks.ts");
  const { readSets } = await import("../watch/params.ts");
  const { printResult } = await import("../terminal/format-result.ts");
  const { drawChecks } = await import("./draw-checks.ts");
  const chosen = topics.length === 0 ? usualTopics : topics;
  const { rows, exitCode, model } = await runChecks(flags, {
    title: "validate",
    topics: chosen,
    params: readSets(set ?? []),
  });
  process.exitCode = exitCode;
  // The run did not begin: its problems are printed already.
  if (model.runId === "") return;
  printResult({ run: model.runId, checks: rows.map(rowAsData) }, output, () => drawChecks(rows));
}
