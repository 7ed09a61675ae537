import { Command } from "commander";
import { endpointsOf, findContext, readConfig, useContext } from "#pki/contexts.ts";
import { printRows } from "../terminal/format-result.ts";
import { contextHome } from "./context-home.ts";
import { addProjectOption, addResultOption, type CommonFlags } from "../options.ts";

/** `kcore config get-contexts|use-context|current-context`. */
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
