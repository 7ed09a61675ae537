import { Command } from "commander";
import { endpointsOf, readConfig, useContext } from "#pki/contexts.ts";
import { contextHome } from "../contexts.ts";
import { addProjectOption, addResultOption, type CommonFlags } from "../options.ts";
import { formatTable } from "../table.ts";

/** `kcore config get-contexts|use-context`. */
export function configCommand(): Command {
  const config = new Command("config")
    .description("Contexts: the clusters this user knows")
    .addHelpText("after", "\nExamples:\n  kcore config get-contexts\n  kcore config use-context lab");
  addResultOption(addProjectOption(config.command("get-contexts")))
    .description("List contexts")
    .action(getContexts);
  addProjectOption(config.command("use-context <name>"))
    .description("Make a context the current one")
    .action(async (name: string) => {
      await useContext(contextHome(), name);
      process.stdout.write(`current context: ${name}\n`);
    });
  return config;
}

async function getContexts({ output }: CommonFlags & { readonly output: "table" | "json" }): Promise<void> {
  const config = await readConfig(contextHome());
  const current = config["current-context"];
  const contexts = Object.entries(config.contexts).map(([name, entry]) => ({
    name,
    current: name === current,
    controllers: endpointsOf(entry),
  }));
  if (output === "json") process.stdout.write(`${JSON.stringify(contexts, undefined, 2)}\n`);
  else if (contexts.length === 0) process.stdout.write("no contexts yet: kcore create cluster\n");
  else
    process.stdout.write(
      formatTable(
        ["CURRENT", "NAME", "CONTROLLERS"],
        contexts.map(({ name, current: isCurrent, controllers }) => [
          isCurrent ? "*" : "",
          name,
          controllers.join(","),
        ]),
      ),
    );
}
