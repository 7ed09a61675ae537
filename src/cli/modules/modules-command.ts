import { Command } from "commander";
import { actionNames, findAction } from "#actions/registry.ts";
import { usageError } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import { projectIfAny } from "../project/find-project.ts";
import { knownModules, type KnownModules } from "./known-modules.ts";
import { searchModules, type SearchResult } from "./search.ts";
import { showExamples, showModule } from "./show-module.ts";
import { testCommand } from "./test-command.ts";
import { addProjectOption, addResultOption, type CommonFlags } from "../options.ts";
import { printRows } from "../terminal/format-result.ts";

type Flags = CommonFlags & {
  readonly output: "table" | "json";
  readonly search?: readonly string[];
  readonly examples?: true;
};

/** `kcore modules [NAME]`: the catalogue. */
export function modulesCommand(): Command {
  return addResultOption(addProjectOption(new Command("modules")))
    .description("List the modules a step can use; with a name, its arguments, refusals and an example")
    .argument("[name]", "a module, as states name it: service.running; or an action of orchestrations: kubernetes.node")
    .option(
      "--search <word...>",
      "find modules by words of their names, summaries and arguments, or by what others call them",
    )
    .option("--examples", "with a name: steps for a state, those that the tests apply to real machines among them")
    .addHelpText(
      "after",
      `
Examples:
  kcore modules
  kcore modules file.managed
  kcore modules file.managed --examples
  kcore modules --search systemd
  kcore modules --search pkg.installed
  kcore modules -o json`,
    )
    .action(showModules)
    .addCommand(testCommand());
}

async function showModules(name: string | undefined, { project, output, search, examples }: Flags): Promise<void> {
  if (name !== undefined && search !== undefined)
    throw usageError(
      "a module is either named or searched for",
      `kcore modules ${name}, or kcore modules --search ${search.join(" ")}`,
    );
  const known = knownModules(projectIfAny(project));
  if (name !== undefined) return examples ? showExamples(known, name, output) : showModule(known, name, output);
  if (examples) throw usageError("--examples are of one module", "kcore modules file.managed --examples");
  return search === undefined ? list(known, output) : find(known, search, output);
}

async function list(known: KnownModules, output: Flags["output"]): Promise<void> {
  const found = (await known.all()).map(({ name, summary }) => ({ name, summary }));
  const rows = found.map(({ name, summary }) => [name, summary]);
  printRows(found, output, ["MODULE", "SUMMARY"], rows);
}

async function find(catalogue: KnownModules, words: readonly string[], output: Flags["output"]): Promise<void> {
  const modules = await catalogue.all();
  const actions = (await Promise.all(actionNames.map((name) => findAction(name)))).filter(
    (action) => action !== undefined,
  );
  const found = [...searchModules(modules, words), ...searchModules(actions, words).map(asAction)];
  const rows = found.map(({ name, summary, found: what }) => [name, summary, what]);
  const known = modules.flatMap(({ name, alsoKnownAs = [] }) => [name, ...alsoKnownAs]);
  const hint = suggestHint(words[0] ?? "", known, "kcore modules lists them all") ?? "";
  printRows(found, output, ["MODULE", "SUMMARY", "FOUND IN"], rows, `no module speaks of ${words.join(" ")}: ${hint}`);
}

function asAction({ name, summary, found }: SearchResult): SearchResult {
  return { name, summary, found: `${found} (an action of orchestrations)` };
}
