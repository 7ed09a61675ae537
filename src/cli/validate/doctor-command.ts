import { Command } from "commander";
import { exitCodes } from "#errors/problem.ts";
import { addResultOption, collect } from "../options.ts";
import { addRunOptions } from "../watch/run-options.ts";
import type { RunFlags } from "../watch/run-request.ts";

interface DoctorFlags extends RunFlags {
  readonly output: "table" | "json";
  readonly set?: readonly string[];
  readonly bundle?: string;
}

/** `kcore doctor [NODE]`. */
export function doctorCommand(): Command {
  const command = new Command("doctor")
    .description("Ask nodes and this machine for causes of trouble, the likeliest first; change nothing")
    .argument("[node]", "the node, or any target; all nodes unless named");
  addResultOption(addRunOptions(command, { full: false }))
    .option("--set <name=value>", "a parameter of the checks (repeatable): kcore orchestrate show validate", collect)
    .option(
      "--bundle <file>",
      "write findings, checks and records of runs, without their command lines and parameters, to FILE.tar.gz, for you alone",
    )
    .addHelpText(
      "after",
      `
Examples:
  kcore doctor
  kcore doctor n1
  kcore doctor n1 --set units=k3s-agent --set names=registry.example.com
  kcore doctor n1 --bundle n1.tar.gz

Each finding has its cause, what shows it, and the command that mends it. It ends with 1 if it found an error. The checks are those
of kcore validate (machine, network, storage, cluster, services). This machine's certificates and runs are asked, too, and the changes since the last good run.`,
    )
    .action(doctor);
  return command;
}

async function doctor(node: string | undefined, { output, set, bundle, ...given }: DoctorFlags): Promise<void> {
  const { rowAsData, runChecks } = await import("./run-checks.ts");
  const { ownFindings } = await import("./own-findings.ts");
  const { drawFindings, findingsOf } = await import("./findings.ts");
  const { readSets } = await import("../watch/params.ts");
  const { printResult } = await import("../terminal/format-result.ts");
  if (bundle !== undefined) await (await import("../project/write-asked.ts")).requireNew(bundle);
  const flags = { ...given, on: [...(node === undefined ? [] : [node]), ...(given.on ?? [])] };
  const since = Date.now();
  const { rows, folder, model, exitCode } = await runChecks(flags, {
    title: "doctor",
    topics: ["machine", "network", "storage", "cluster", "services"],
    params: readSets(set ?? []),
  });
  if (model.runId === "") {
    process.exitCode = exitCode;
    return;
  }
  const [only] = model.nodes.size === 1 ? model.nodes.keys() : [];
  const { context } = flags;
  const own = await ownFindings(folder.project, {
    since,
    ...(context !== undefined && { context }),
    ...(only !== undefined && { node: only }),
  });
  const findings = findingsOf(rows, own);
  const result = { run: folder.id, findings, checks: rows.map(rowAsData) };
  if (bundle !== undefined) {
    const { writeBundle } = await import("./write-bundle.ts");
    await writeBundle(bundle, { project: folder.project, result, ...(only !== undefined && { node: only }) });
  }
  printResult(result, output, () => drawFindings(findings, rows.length));
  if (bundle !== undefined && output !== "json") process.stderr.write(`Bundle written: ${bundle}\n`);
  process.exitCode = findings.some(({ severity }) => severity === "error") ? exitCodes.failed : exitCodes.done;
}
