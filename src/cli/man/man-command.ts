import { join } from "node:path";
import { Command } from "commander";
import { usageError } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import { pathOf } from "../terminal/wrap-help.ts";
import { writeAskedInto } from "../project/write-asked.ts";
import { kcoreVersion } from "../process/version.ts";
import { manPage, pageName } from "./man-page.ts";

/** `kcore man [COMMAND…] [--out DIR]`: pages for man(1), made of the very help. */
export function manCommand(): Command {
  return new Command("man")
    .description("Print the manual page of a command, or write those of all commands into a folder")
    .argument("[command...]", "the command, such as: state apply; none: kcore itself")
    .option("--out <dir>", "write the page of each command there, as man(1) looks for them: DIR/man1/kcore.1 …")
    .addHelpText(
      "after",
      `
Examples:
  kcore man state apply | man -l -
  kcore man --out ~/.local/share/man        from then on: man kcore-state-apply`,
    )
    .action(async (words: readonly string[], { out }: { out?: string }, { parent }: Command) => {
      const program = parent as Command; // with all commands loaded (program.ts)
      if (out === undefined) {
        process.stdout.write(manPage(find(program, words), kcoreVersion()));
        return;
      }
      const folder = join(out, "man1");
      const pages = [...allOf(program)].map(
        (command) => [`${pageName(command)}.1`, manPage(command, kcoreVersion())] as const,
      );
      await writeAskedInto(folder, pages);
      process.stderr.write(`${pages.length} pages in ${folder}\n`);
    });
}

/** The command and all below it that help shows. */
export function* allOf(command: Command): Generator<Command> {
  yield command;
  for (const inner of command.createHelp().visibleCommands(command)) if (inner.name() !== "help") yield* allOf(inner);
}

function find(program: Command, words: readonly string[]): Command {
  let found = program;
  for (const word of words) {
    const inner = found.commands.find((one) => one.name() === word || one.aliases().includes(word));
    if (inner === undefined) {
      const names = found.commands.map((one) => one.name());
      throw usageError(
        `${pathOf(found)} has no command “${word}”`,
        suggestHint(word, names, names.length === 0 ? "it has none" : `one of: ${names.join(", ")}`),
      );
    }
    found = inner;
  }
  return found;
}
