import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { Command } from "commander";
import { commandTable } from "#cli/command-table.ts";
import { inheritOptions, addClusterOptions, addMachineOptions } from "#cli/options.ts";
import { readPages, root, type Piece } from "#support/pages.ts";
import { wordsOf } from "#support/transcripts.ts";

const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  scripts: Readonly<Record<string, string>>;
};
const pages = readPages({ adr: false });

/** Every command of a shell block, without its remark; several in one line count separately. */
const inBlocks = pages.flatMap(({ blocks }) =>
  blocks
    .filter(({ info }) => /^(sh|console)/.test(info))
    .flatMap(({ text, info, at, page }) =>
      text
        .split("\n")
        .filter((line) => info === "sh" || line.startsWith("$ "))
        .map((line) => line.replace(/^\$ /, "").replace(/ +# .*$/, ""))
        .flatMap((line) => line.split(/ && | ?; /))
        .map((line) => ({ page, at, text: line.trim().replace(/^sudo /, "") })),
    ),
);
const inText: readonly Piece[] = pages.flatMap(({ spans }) => spans);
const commands = [...inBlocks, ...inText];

/** All ways of writing a command: `[--flag VALUE]` is optional, `a|b` an alternative, `…` more words. */
function waysOf(text: string): readonly string[] {
  const plain = text.replaceAll(/ ?…/g, "").replaceAll(/\[([^\]]+)\]/g, "$1");
  const choice = /(?<=^| )([\w.-]+(?:\|[\w.-]+)+)(?= |$)/.exec(plain)?.[1];
  return choice === undefined ? [plain] : choice.split("|").flatMap((one) => waysOf(plain.replace(choice, one)));
}

/** Parses the words as the command line does, without carrying them out. @throws the errors of the command line */
async function parse(words: readonly string[]): Promise<void> {
  const program = addMachineOptions(addClusterOptions(new Command("kcore")))
    .version("0")
    .enablePositionalOptions();
  program.hook("preAction", (_, command) => inheritOptions(command));
  program.command("help").argument("[command]");
  for (const { name, load } of commandTable) if (words.includes(name)) program.addCommand(await load());
  const silence = (command: Command): void => {
    command.exitOverride().configureOutput({ writeErr: () => undefined, writeOut: () => undefined });
    for (const sub of command.commands) silence(sub);
    if (command.commands.length === 0 || command.registeredArguments.length > 0) command.action(() => undefined);
  };
  silence(program);
  await program.parseAsync(words, { from: "user" });
}

/** Whether the words end at a command that only groups others. */
function isGroup(words: readonly string[]): boolean {
  return words.length <= 2 && words.every((word) => /^[a-z-]+$/.test(word));
}

async function problemOf(text: string): Promise<string | undefined> {
  const words = wordsOf(text).slice(1);
  try {
    await parse(words);
    return undefined;
  } catch (error) {
    const { code = "", message } = error as { code?: string; message: string };
    if (["commander.helpDisplayed", "commander.version"].includes(code)) return undefined;
    // `kcore runs`, or `kcore node approve` without the node: the page speaks of the command.
    if (["commander.help", "commander.missingArgument", "commander.missingMandatoryOptionValue"].includes(code))
      return isGroup(words) ? undefined : message;
    return message;
  }
}

describe("the commands that README and docs name", () => {
  it("are known to the command line, with their options and arguments", async () => {
    const own = commands.filter(({ text }) => /^(bin\/)?kcore( |$)/.test(text));
    expect(own.length).to.be.greaterThan(100);
    const problems: string[] = [];
    for (const { at, text } of own)
      for (const way of waysOf(text)) {
        const problem = await problemOf(way);
        if (problem !== undefined) problems.push(`${at}: ${way}: ${problem}`);
      }
    expect(problems).to.deep.equal([]);
  });

  it("are scripts of package.json when npm runs them", () => {
    const named = commands.flatMap(({ at, text }) =>
      Array.from(text.matchAll(/\bnpm (?:run )?((?!ci\b|install\b|run\b)[\w:]+)/g), ([, script = ""]) => ({
        at,
        script,
      })),
    );
    expect(named.length).to.be.greaterThan(10);
    expect(named.filter(({ script }) => !(script in scripts))).to.deep.equal([]);
  });

  it("take every option that a text names alone", async () => {
    const known = new Set(["--help", "--version", "--config", "--fresh", "--rounds", "--quick", "--only", "--save"]);
    const learn = (command: Command): void => {
      for (const { long, short } of command.options) for (const flag of [long, short]) if (flag) known.add(flag);
      command.commands.forEach(learn);
    };
    learn(addMachineOptions(addClusterOptions(new Command())));
    for (const { load } of commandTable) learn(await load());
    const alone = inText.filter(({ text }) => text.startsWith("-") && !/^-( |$)/.test(text));
    const flags = alone.flatMap(({ at, text }) =>
      (text.match(/(?<=^| )(?:--[a-z][a-z-]*|-[a-zA-Z](?= |$))/g) ?? []).map((flag) => ({ at, flag })),
    );
    expect(flags.length).to.be.greaterThan(20);
    expect(flags.filter(({ flag }) => !known.has(flag))).to.deep.equal([]);
  });

  it("are refused when they are none: a gate that cannot fail is none", async () => {
    for (const wrong of [
      "get nodez",
      "get nodes --al",
      "runs show",
      "orchestrate x --sets a=b",
      "ping --dry-run",
      "foo",
    ])
      expect(await problemOf(`kcore ${wrong} x y z`), wrong).not.to.equal(undefined);
  });
});
