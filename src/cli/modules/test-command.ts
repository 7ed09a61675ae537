import { Command } from "commander";
import { KcoreError, usageError } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import { addProjectOption, addResultOption, type CommonFlags } from "../options.ts";
import { findProject } from "../project/find-project.ts";
import { printRows } from "../terminal/format-result.ts";
import { shownTasks } from "../terminal/shown-tasks.ts";
import { ownModulesOf } from "./known-modules.ts";
import { requireGood, trialStages, tryModule } from "./try-module.ts";

type Flags = CommonFlags & { readonly output: "table" | "json"; readonly busybox: boolean };

/** `kcore modules test NAME`. */
export function testCommand(): Command {
  return addResultOption(addProjectOption(new Command("test")))
    .description(
      "Try a module of the project's own, with its example, twice on lab machines with dash, bash and BusyBox",
    )
    .argument("<name>", "the module, as states name it; its file is modules/NAME.yaml")
    .option("--no-busybox", "without the BusyBox machine: the module needs systemd, apt or the like")
    .addHelpText("after", "\nExamples:\n  kcore modules test site.motd\n  kcore modules test site.unit --no-busybox")
    .action(async (name: string, { project, output, busybox }: Flags) => {
      const folder = findProject(project);
      const own = ownModulesOf(folder);
      if (!own.names.includes(name))
        throw usageError(
          `the project has no module “${name}”`,
          suggestHint(name, own.names, "a module is a file of its own: modules/site.motd.yaml"),
        );
      const { example } = own.load(name);
      if (example === undefined)
        throw new KcoreError({
          code: "MODULE_INVALID",
          message: `modules/${name}.yaml has no example to try it with`,
          hint: "example: { … }, arguments with which it converges on a new machine",
        });
      const tasks = shownTasks(output);
      const trials = await tryModule({ project: folder, module: name, args: example, withBusybox: busybox, tasks });
      const rows = trials.map(({ shell, outcomes }) => [shell, ...outcomes]);
      printRows(trials, output, ["SHELL", ...trialStages.map((stage) => stage.toUpperCase())], rows);
      requireGood(name, trials);
    });
}
