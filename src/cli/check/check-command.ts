import { Command, Option } from "commander";
import type { ProjectCheck } from "#engine/orchestrate/check-project.ts";
import { exitCodes, KcoreError } from "#errors/problem.ts";
import { addProjectOption, type CommonFlags } from "../options.ts";
import { findProject } from "../project/find-project.ts";
import { githubLine, gitlabReport } from "./ci-formats.ts";
import { findProblems } from "./find-problems.ts";
import { printResult } from "../terminal/format-result.ts";

interface Flags extends CommonFlags {
  readonly on?: string;
  readonly output: "text" | "json" | "github" | "gitlab";
}

/** `kcore check [FILE…]`: all mistakes of a project at once, without a connection. */
export function checkCommand(): Command {
  return addProjectOption(new Command("check"))
    .description(
      "Check a project without a connection: its roster, states and templates, and its orchestrations on the nodes of the roster",
    )
    .argument("[file...]", "check only these files and what uses them; else all of the project")
    .option("--on <target>", "the nodes of target parameters without a default; else any node of the roster")
    .addOption(
      new Option(
        "-o, --output <format>",
        "how to print what is wrong; github: as annotations of a workflow, gitlab: as a Code Quality report",
      )
        .choices(["text", "json", "github", "gitlab"])
        .default("text"),
    )
    .addHelpText(
      "after",
      `
Examples:
  kcore check
  kcore check states/web.yaml
  kcore check --on 'role:worker'
  kcore check -o github                     in a workflow of GitHub Actions
  kcore check -o gitlab >gl-code-quality-report.json

docs/checking.md tells how git runs it before each commit, docs/ci.md how a CI does.

Exit codes: 0 all is in order, 2 something is wrong.`,
    )
    .action(check);
}

async function check(files: readonly string[], { project: given, on, output }: Flags): Promise<void> {
  const project = findProject(given);
  const checked = await findProblems(project, { files, on });
  if (checked.problems.length > 0) {
    if (output === "text") throw new KcoreError(checked.problems);
    process.exitCode = exitCodes.usage;
  }
  print(checked, { output, project });
}

function print(
  checked: ProjectCheck,
  { output, project }: { readonly output: Flags["output"]; readonly project: string },
): void {
  for (const source of checked.unasked)
    process.stderr.write(`${source} has never answered, and check does not ask it: kcore roster check does\n`);
  if (output === "json") printResult(checked, "json");
  else if (output === "github") {
    const workspace = process.env["GITHUB_WORKSPACE"] ?? process.cwd();
    for (const problem of checked.problems) process.stdout.write(`${githubLine(problem, project, workspace)}\n`);
  } else if (output === "gitlab") {
    const workspace = process.env["CI_PROJECT_DIR"] ?? process.cwd();
    process.stdout.write(gitlabReport(checked.problems, project, workspace));
  } else {
    const { nodes, states, orchestrations, unasked } = checked;
    const counts = [count(states, "state"), count(orchestrations, "orchestration")];
    process.stdout.write(
      `${counts.join(" and ")}, ${unasked.length > 0 ? "nodes unknown" : `${nodes} node${nodes === 1 ? "" : "s"}`}: in order\n`,
    );
  }
}

function count({ length }: readonly string[], what: string): string {
  return `${length} ${what}${length === 1 ? "" : "s"}`;
}
