import { join } from "node:path";
import { Command } from "commander";
import { usageError } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import { commandPath } from "../terminal/wrap-help.ts";
import { writeAskedInto } from "../project/write-asked.ts";
import { kcoreVersion } from "../process/version.ts";

/** `kcore man [COMMAND…] [--out DIR]`. */
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
      const pages = [...commandTree(program)].map(
        (command) => [`${pageName(command)}.1`, manPage(command, kcoreVersion())] as const,
      );
      await writeAskedInto(folder, pages);
      process.stderr.write(`${pages.length} pages in ${folder}\n`);
    });
}

/** The command, and below it all commands that help shows. */
export function* commandTree(command: Command): Generator<Command> {
  yield command;
  for (const inner of command.createHelp().visibleCommands(command))
    if (inner.name() !== "help") yield* commandTree(inner);
}

function find(program: Command, words: readonly string[]): Command {
  let found = program;
  for (const word of words) {
    const inner = found.commands.find((one) => one.name() === word || one.aliases().includes(word));
    if (inner === undefined) {
      const names = found.commands.map((one) => one.name());
      throw usageError(
        `${commandPath(found)} has no command “${word}”`,
        suggestHint(word, names, names.length === 0 ? "it has none" : `one of: ${names.join(", ")}`),
      );
    }
    found = inner;
  }
  return found;
}

/** The name of a command's page for man(1): `kcore-state-apply`. */
export function pageName(command: Command): string {
  return commandPath(command).replaceAll(" ", "-");
}

/** The man(7) page of a command, section 1, made of its help, for groff and mandoc; `version` stands at the foot. */
export function manPage(command: Command, version: string): string {
  const help = command.createHelp();
  const inner = help.visibleCommands(command).filter((one) => one.name() !== "help");
  const { examples, others } = afterHelp(command);
  return [
    `.TH "${pageName(command).toUpperCase()}" 1 "" "kcore ${version}" "kcore"\n`,
    section("NAME", `${pageName(command).replaceAll("-", "\\-")} \\- ${escapeRoff(summaryOf(command))}`),
    section("SYNOPSIS", `\\fB${escapeRoff(commandPath(command))}\\fR ${escapeRoff(usageOf(command))}`),
    section("DESCRIPTION", escapeRoff([command.description(), ...others].join("\n.PP\n")).replaceAll("\\&.PP", ".PP")),
    section("COMMANDS", inner.map((one) => tagged(help.subcommandTerm(one), summaryOf(one))).join("")),
    section(
      "ARGUMENTS",
      help
        .visibleArguments(command)
        .map((one) => tagged(help.argumentTerm(one), help.argumentDescription(one)))
        .join(""),
    ),
    section(
      "OPTIONS",
      help
        .visibleOptions(command)
        .map((one) => tagged(help.optionTerm(one), help.optionDescription(one)))
        .join(""),
    ),
    section("EXAMPLES", examples === "" ? "" : verbatim(examples)),
    section("EXIT STATUS", exitStatus),
    section("SEE ALSO", seeAlso(command, inner)),
  ].join("");
}

const exitStatus = [
  ["0", "done"],
  ["1", "a node failed"],
  ["2", "the input is wrong"],
  ["3", "nothing failed, but nodes could not be reached"],
  ["4", "a dry run with --fail-on-change differs"],
  ["70", "a bug in kcore"],
  ["130", "interrupted"],
]
  .map(([code = "", meaning = ""]) => tagged(code, meaning))
  .join("");

/** The command's description in a list of commands. */
function summaryOf(command: Command): string {
  return command.summary() || command.description();
}

function usageOf(command: Command): string {
  return command.createHelp().commandUsage(command).slice(commandPath(command).length).trim();
}

/** The texts that a command adds below its help: the examples, and the other paragraphs. */
function afterHelp(command: Command): { examples: string; others: readonly string[] } {
  let text = "";
  command.configureOutput({ writeOut: (more) => void (text += more) });
  command.outputHelp();
  const paragraphs = text
    .slice(command.helpInformation().length)
    .split(/\n{2,}/)
    .map((one) => one.trim())
    .filter((one) => one !== "");
  const isExamples = (one: string): boolean => /^Examples?:\n/.test(one);
  const examples = paragraphs.find(isExamples)?.replace(/^Examples?:\n/, "") ?? "";
  return { examples, others: paragraphs.filter((one) => !isExamples(one)) };
}

function seeAlso(command: Command, inner: readonly Command[]): string {
  const above = command.parent ? [command.parent] : [];
  return [...above, ...inner].map((one) => `\\fB${pageName(one).replaceAll("-", "\\-")}\\fR(1)`).join(",\n");
}

/** Escapes a text so that man(1) shows it unchanged, with dashes that can be copied. */
function escapeRoff(text: string): string {
  return text
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replaceAll("…", "...")
    .replaceAll("“", "\\(lq")
    .replaceAll("”", "\\(rq")
    .replaceAll(/^([.'])/gm, "\\&$1");
}

function section(title: string, body: string): string {
  return body === "" ? "" : `.SH ${title}\n${body.trimEnd()}\n`;
}

/** A term in bold, its meaning indented below it. */
function tagged(term: string, meaning: string): string {
  return `.TP\n\\fB${escapeRoff(term)}\\fR\n${escapeRoff(meaning)}\n`;
}

/** Lines as they are, without filling. */
function verbatim(text: string): string {
  return `.nf\n${escapeRoff(text)}\n.fi\n`;
}
