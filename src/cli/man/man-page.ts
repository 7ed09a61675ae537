import type { Command } from "commander";
import { pathOf } from "../terminal/wrap-help.ts";

/** The page's name, as man(1) is asked for it: `kcore-state-apply`. */
export function pageName(command: Command): string {
  return pathOf(command).replaceAll(" ", "-");
}

/** The man page of a command, section 1, made of its help; `version` stands at the foot. */
export function manPage(command: Command, version: string): string {
  const help = command.createHelp();
  const inner = help.visibleCommands(command).filter((one) => one.name() !== "help");
  const { title, examples, others } = afterHelp(command);
  return [
    `.TH "${pageName(command).toUpperCase()}" 1 "" "kcore ${version}" "kcore"\n`,
    section("NAME", `${pageName(command).replaceAll("-", "\\-")} \\- ${escapeRoff(summaryOf(command))}`),
    section("SYNOPSIS", `\\fB${escapeRoff(pathOf(command))}\\fR ${escapeRoff(usageOf(command))}`),
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
    section(title, examples === "" ? "" : verbatim(examples)),
    section("EXIT STATUS", exitStatus),
    section("SEE ALSO", seeAlso(command, inner)),
  ].join("");
}

const exitStatus = [
  ["0", "done"],
  ["1", "a node failed"],
  ["2", "the input is wrong"],
  ["3", "nothing failed, but nodes could not be reached"],
  ["70", "a bug in kcore"],
  ["130", "interrupted"],
]
  .map(([code = "", meaning = ""]) => tagged(code, meaning))
  .join("");

/** The command's line in the list of commands. */
function summaryOf(command: Command): string {
  return command.summary() || command.description();
}

function usageOf(command: Command): string {
  return command.createHelp().commandUsage(command).slice(pathOf(command).length).trim();
}

/** The text below the usual help: examples, and other paragraphs. */
function afterHelp(command: Command): { title: string; examples: string; others: readonly string[] } {
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
  return { title: "EXAMPLES", examples, others: paragraphs.filter((one) => !isExamples(one)) };
}

function seeAlso(command: Command, inner: readonly Command[]): string {
  const above = command.parent ? [command.parent] : [];
  return [...above, ...inner].map((one) => `\\fB${pageName(one).replaceAll("-", "\\-")}\\fR(1)`).join(",\n");
}

/**
 * Text for man(7) pages, as groff and mandoc read it. Everything that comes from outside goes through {@link escapeRoff}.
 */

/** A text that stands for itself: no request at a line's beginning, no escape, and dashes that can be copied. */
export function escapeRoff(text: string): string {
  return text
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replaceAll("…", "...")
    .replaceAll("“", "\\(lq")
    .replaceAll("”", "\\(rq")
    .replaceAll(/^([.'])/gm, "\\&$1");
}

export function section(title: string, body: string): string {
  return body === "" ? "" : `.SH ${title}\n${body.trimEnd()}\n`;
}

/** A term in bold, its meaning indented below it. */
export function tagged(term: string, meaning: string): string {
  return `.TP\n\\fB${escapeRoff(term)}\\fR\n${escapeRoff(meaning)}\n`;
}

/** Lines as they are, without filling. */
export function verbatim(text: string): string {
  return `.nf\n${escapeRoff(text)}\n.fi\n`;
}
