import { Command, Option } from "commander";
import { KcoreError } from "#errors/problem.ts";
import { collectSteps } from "./step-results.ts";
import { addRunOptions, requestOf, startRun, type RunFlags } from "../watch/start-run.ts";
import { printJson } from "../terminal/print-json.ts";

interface ExecFlags extends RunFlags {
  readonly shell?: boolean;
  readonly output: "plain" | "json" | "events";
}

/** `kcore exec --on TARGET -- CMD…`. */
export function execCommand(): Command {
  const command = new Command("exec")
    .description("Run one command on nodes; what it prints comes as it is printed")
    .argument("<command...>", "the command and its arguments, as they are: no shell reads them unless --shell")
    .passThroughOptions();
  addRunOptions(command, { full: false })
    .option("--shell", "give the words to sh -c, joined by blanks")
    .addOption(
      new Option("-o, --output <format>", "plain, json (one array at the end), events (one event a line)")
        .choices(["plain", "json", "events"])
        .default("plain"),
    )
    .addHelpText(
      "after",
      `
Examples:
  kcore exec --on 'role:worker' -- uname -a
  kcore exec --on '*' --shell 'df -h / | tail -1'
  kcore exec --on n1 -o json -- cat /etc/os-release`,
    )
    .action(execute);
  return command;
}

async function execute(argv: readonly string[], flags: ExecFlags): Promise<void> {
  requireTarget(flags, "exec");
  const request = requestOf(flags, { kind: "exec", argv, shell: flags.shell ?? false });
  if (flags.output !== "json") {
    const output = flags.output === "events" ? "json" : "plain";
    process.exitCode = (await startRun(flags, request, { output })).exitCode;
    return;
  }
  const steps = collectSteps();
  const { exitCode, model } = await startRun(flags, request, { output: "quiet", onEvent: steps.take });
  process.stdout.write(`${printJson(steps.results(model), 2)}\n`);
  process.exitCode = exitCode;
}

/** Ad hoc commands never mean all nodes unless told so (S-25). */
export function requireTarget({ on = [] }: RunFlags, name: string): void {
  if (on.length > 0) return;
  throw new KcoreError({
    code: "USAGE",
    message: `kcore ${name}: no nodes are named`,
    hint: `kcore ${name} --on 'n1' …, or --on '*' for all; kcore roster list shows them`,
  });
}
