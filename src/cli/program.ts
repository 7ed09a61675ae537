import { Command, type CommanderError } from "commander";
import { type KcoreError, usageError } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import { commandTable } from "./command-table.ts";
import { inheritOptions, addMachineOptions, addClusterOptions } from "./options.ts";
import { commandPath, wrapHelp } from "./terminal/wrap-help.ts";
import { kcoreVersion } from "./process/version.ts";

/**
 * The program, with only the command loaded that the words name: help lists the others by name. For manual pages all
 * commands are loaded.
 */
export async function buildProgram(words: readonly string[]): Promise<Command> {
  const program = new Command("kcore")
    .description("Brings bare machines into a cluster over plain SSH, and keeps them there.")
    .version(kcoreVersion(), "-V, --version", "print the version")
    .helpOption("-h, --help", "show help")
    .enablePositionalOptions()
    .addHelpText("after", topExamples);
  addMachineOptions(addClusterOptions(program));
  program.hook("preAction", async (_, command) => {
    inheritOptions(command);
    (await import("./project/project-cluster.ts")).useClusterOfProject(command);
  });
  const wanted = wantedCommand(words, program);
  for (const { name, summary, load } of commandTable)
    program.addCommand(
      name === wanted || wanted === "man"
        ? (await load(words)).summary(summary)
        : new Command(name).description(summary),
    );
  program.helpCommand("help [command]", "show help for a command");
  program.action(() => {
    const [unknown] = program.args;
    if (unknown !== undefined) throw unknownCommand(unknown);
    program.outputHelp();
  });
  program.allowExcessArguments();
  prepareCommand(program);
  return program;
}

/** For a command and all below it: turns errors of the command line into problems, and wraps the help. */
function prepareCommand(command: Command): void {
  command.exitOverride((error) => {
    throw asProblem(error, command);
  });
  // commander must not break lines: `wrapHelp` does.
  command.configureOutput({ writeErr: () => undefined, writeOut: writeHelp, getOutHelpWidth: () => 100_000 });
  // The problem's hint has the suggestion.
  command.showSuggestionAfterError(false);
  for (const sub of command.commands) prepareCommand(sub);
}

function writeHelp(text: string): void {
  const { columns } = process.stdout as Partial<NodeJS.WriteStream>;
  process.stdout.write(wrapHelp(text, columns || 80));
}

function asProblem(error: CommanderError, command: Command): Error {
  if (error.exitCode === 0) return new HelpShown();
  const path = commandPath(command);
  if (error.code === "commander.help") return usageError(`${path} needs a command`, listCommands(command));
  const unknown = /unknown (?:command|option) '([^']*)'/.exec(error.message)?.[1];
  const candidates = unknown?.startsWith("-")
    ? command
        .createHelp()
        .visibleOptions(command)
        .flatMap(({ long, short }) => [long, short].filter((name) => name !== undefined))
    : command.commands.map((sub) => sub.name());
  return usageError(
    `${path}: ${error.message.replace(/^error: /, "").replaceAll(/'([^']*)'/g, "“$1”")}`,
    (unknown && suggestHint(unknown, candidates)) ?? `${path} --help`,
  );
}

/** Thrown after help or the version was shown; nothing went wrong. */
export class HelpShown extends Error {}

function unknownCommand(word: string): KcoreError {
  const names = commandTable.map(({ name }) => name);
  return usageError(`kcore has no command “${word}”`, suggestHint(word, names, `one of: ${names.join(", ")}`));
}

function listCommands(command: Command): string {
  return `one of: ${command.commands.map((sub) => sub.name()).join(", ")}`;
}

/** The first word that is neither an option nor an option's value; for `help X` it is X. */
function wantedCommand(words: readonly string[], { options }: Command): string | undefined {
  const takesValue = (word: string | undefined) =>
    word !== undefined && options.some(({ short, long, required }) => required && [short, long].includes(word));
  const names = words.filter((word, index) => !word.startsWith("-") && !takesValue(words[index - 1]));
  return names[0] === "help" ? names[1] : names[0];
}

const topExamples = `
Examples:
  kcore lab up 2                            two throwaway machines to try things on
  kcore orchestrate deploy_node n1          take a bare machine to a Ready node
  kcore orchestrate deploy_node n1 --dry-run
  kcore exec --on 'role:worker' -- uname -a
  kcore runs list
  kcore -s 192.0.2.11 -s 192.0.2.12 get nodes

Exit codes: 0 done; 1 a node failed; 2 the input is wrong; 3 only unreachable nodes; 4 a dry run with
--fail-on-change differs; 70 a bug; 130 interrupted.`;
