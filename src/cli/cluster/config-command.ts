import { Command } from "commander";
import { deleteContext, endpointsOf, findContext, readConfig, useContext } from "#pki/contexts.ts";
import { printRows } from "../terminal/format-result.ts";
import { contextHome } from "../process/kcore-home.ts";
import { addProjectOption, addResultOption, type CommonFlags } from "../options.ts";

/** `kcore config get-contexts|use-context|current-context|delete-context`. */
export function configCommand(): Command {
  const config = new Command("config")
    .description("Contexts: the clusters this user knows")
    .addHelpText(
      "after",
      "\nExamples:\n  kcore config get-contexts\n  kcore config use-context lab\n  kcore config current-context",
    );
  addResultOption(addProjectOption(config.command("get-contexts")), ["table", "json", "yaml"])
    .description("List contexts")
    .addHelpText("after", "\nExamples:\n  kcore config get-contexts -o json")
    .action(getContexts);
  addProjectOption(config.command("use-context <name>"))
    .description("Make a context the current one")
    .addHelpText("after", "\nExamples:\n  kcore config use-context lab")
    .action(async (name: string) => {
      await useContext(contextHome(), name);
      process.stdout.write(`current context: ${name}\n`);
    });
  addProjectOption(config.command("current-context"))
    .description("Print the name of the current context")
    .addHelpText("after", "\nExamples:\n  kcore config current-context")
    .action(async ({ context }: CommonFlags) => {
      process.stdout.write(`${(await findContext(contextHome(), context)).name}\n`);
    });
  addProjectOption(config.command("delete-context <name>"))
    .description("Forget a cluster; its CA and keys are put aside, not removed")
    .addHelpText("after", "\nExamples:\n  kcore config delete-context lab")
    .action(async (name: string) => {
      const aside = await deleteContext(contextHome(), name, Date.now());
      process.stdout.write(`the context “${name}” is forgotten\n`);
      if (aside !== undefined)
        process.stdout.write(`its CA and keys lie in ${aside}: remove that when none of its machines is left\n`);
    });
  return config;
}

async function getContexts({ output }: CommonFlags & { readonly output: "table" | "json" | "yaml" }): Promise<void> {
  const config = await readConfig(contextHome());
  const current = config["current-context"];
  const contexts = Object.entries(config.contexts).map(([name, entry]) => ({
    name,
    current: name === current,
    controllers: endpointsOf(entry),
  }));
  const rows = contexts.map(({ name, current: is, controllers }) => [is ? "*" : "", name, controllers.join(",")]);
  printRows(contexts, output, ["CURRENT", "NAME", "CONTROLLERS"], rows, "no contexts yet: kcore create cluster");
}
