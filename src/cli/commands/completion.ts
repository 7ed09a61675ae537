import { Argument, Command } from "commander";
import { complete } from "../completion/candidates.ts";
import { completionScripts, shells, type Shell } from "../completion/scripts.ts";

/** `kcore completion SHELL`, and what the shells ask behind the scenes. */
export function completionCommand(): Command {
  const completion = new Command("completion")
    .description("Print what lets your shell complete kcore's words: commands, flags, nodes of the roster, contexts")
    .addArgument(new Argument("<shell>").choices(shells))
    .addHelpText(
      "after",
      `
Examples:
  source <(kcore completion bash)                                        in ~/.bashrc
  source <(kcore completion zsh)                                         in ~/.zshrc, after compinit
  kcore completion fish > ~/.config/fish/completions/kcore.fish`,
    )
    .action((shell: Shell) => {
      process.stdout.write(completionScripts[shell]);
    });
  completion.addCommand(new Command("candidates").argument("[words...]").action(printCandidates), { hidden: true });
  return completion;
}

async function printCandidates(words: readonly string[]): Promise<void> {
  const { buildProgram } = await import("../program.ts");
  const { candidates, files } = complete(await buildProgram(words), words);
  const lines = candidates.map(({ value, description }) => `${value}\t${description.replaceAll(/\s+/g, " ")}\n`);
  process.stdout.write(lines.join("") + (files ? ":files\n" : ""));
}
