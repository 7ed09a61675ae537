import { Argument, Command } from "commander";
import { completionScripts, shells, type Shell } from "./scripts.ts";

/** `kcore completion SHELL`. */
export function completionCommand(): Command {
  return new Command("completion")
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
}
