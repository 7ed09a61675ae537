import { expect } from "chai";
import type { Command } from "commander";
import { commandTable } from "#cli/command-table.ts";
import { buildProgram } from "#cli/program.ts";
import { wrapHelp } from "#cli/terminal/wrap-help.ts";

/** The help texts of a command and of all commands below it. */
function* helpsOf(command: Command): Generator<string> {
  let text = "";
  command.configureOutput({ writeOut: (some) => (text += some), getOutHasColors: () => false });
  command.outputHelp();
  yield text;
  for (const sub of command.commands) yield* helpsOf(sub);
}

describe("help in a narrow terminal", () => {
  it("breaks between words with a hanging indent, and breaks no example command", () => {
    const text = wrapHelp(
      [
        "A sentence about what this command does, at length",
        "  --name <host>  a name under which it is reached",
        "  kcore web --listen 0.0.0.0:8443 --name bastion.example.org",
        "  kcore web --port 0 -o json | jq   prints an address",
      ].join("\n"),
      36,
    );
    expect(text.split("\n")).to.deep.equal([
      "A sentence about what this command",
      "does, at length",
      "  --name <host>  a name under which",
      "                 it is reached",
      "  kcore web --listen 0.0.0.0:8443 --name bastion.example.org",
      "  kcore web --port 0 -o json | jq",
      "      prints an address",
    ]);
  });

  it("refills a whole paragraph, and joins no lines that fit", () => {
    const paragraph = "A sentence about what this command does, at length\nand what it\nleaves as it is.";
    expect(wrapHelp(`Short.\nLines.\n\n${paragraph}\n\nCommands:\n  kcore web`, 36).split("\n")).to.deep.equal([
      "Short.",
      "Lines.",
      "",
      "A sentence about what this command",
      "does, at length and what it leaves",
      "as it is.",
      "",
      "Commands:",
      "  kcore web",
    ]);
  });

  for (const { name } of commandTable)
    it(`of ${name} keeps its words, and only examples are longer than the terminal's width`, async () => {
      const program = await buildProgram([name]);
      const command = program.commands.find((one) => one.name() === name);
      for (const help of command ? helpsOf(command) : [])
        for (const columns of [60, 80]) {
          const wrapped = wrapHelp(help, columns);
          expect(wrapped.split(/\s+/)).to.deep.equal(help.split(/\s+/));
          const long = wrapped.split("\n").filter((line) => line.length > columns);
          for (const line of long) expect(line).to.match(/^ {2,4}\S/);
        }
    });
});
