import { expect } from "chai";
import type { Command } from "commander";
import { commandTable } from "#cli/command-table.ts";

/** The commands without subcommands, each with its words. */
function leavesOf(command: Command, before: readonly string[] = []): readonly { words: string; command: Command }[] {
  const words = [...before, command.name()];
  const own = command.commands.filter((one) => one.name() !== "help");
  return own.length > 0 ? own.flatMap((one) => leavesOf(one, words)) : [{ words: words.join(" "), command }];
}

/** A command's help as printed. */
function helpOf(command: Command): string {
  let text = "";
  command.configureOutput({ writeOut: (more) => (text += more) }).outputHelp();
  return text;
}

describe("the help of every command", () => {
  it("shows at least one example of that command", async () => {
    const commands = await Promise.all(commandTable.map(({ load }) => load()));
    const leaves = commands.flatMap((command) => leavesOf(command));
    expect(leaves.length).to.be.greaterThan(50);
    const without = leaves.filter(({ words, command }) => {
      const [, examples = ""] = helpOf(command).split("\nExamples:\n");
      // Global options may stand before the words.
      return !examples.split("\n").some((line) => new RegExp(`^  kcore (?:-\\S+ \\S+ )*${words}(?: |$)`).test(line));
    });
    expect(without.map(({ words }) => words)).to.deep.equal([]);
  });
});
