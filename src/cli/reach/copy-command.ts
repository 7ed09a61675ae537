import { Command, InvalidArgumentError, Option } from "commander";
import { addRunOptions } from "../watch/run-options.ts";
import { copyFiles, type CopyFlags } from "./copy-files.ts";
import { copyPlan } from "./copy-plan.ts";

/** `kcore cp SRC… DST`. */
export function copyCommand(): Command {
  const command = new Command("cp")
    .description("Copy files and folders to nodes or from nodes; a broken copy goes on where it ended")
    .argument(
      "<paths...>",
      "sources, then the destination: NODE:/PATH is a node's; with --on, :/PATH of all these nodes",
    );
  addRunOptions(command, { full: false })
    .option("-r, --recursive", "copy folders with all that is in them")
    .addOption(
      new Option("--mode <mode>", "the mode of a file there, without -r; else that of the source")
        .argParser(parseMode)
        .conflicts("recursive"),
    )
    .addOption(
      new Option("--owner <user[:group]>", "the owner of files there; else kept, root for a new one").argParser(
        parseOwner,
      ),
    )
    .addOption(new Option("-o, --output <format>", "how to print").choices(["plain", "json"]).default("plain"))
    .addHelpText(
      "after",
      `
Examples:
  kcore cp app.tar n1:/srv/app.tar
  kcore cp --mode 600 --owner app:app app.key cert.pem n1:/etc/app/
  kcore cp -r site --on 'role:web' :/srv/site
  kcore cp n1:/var/log/syslog .
  kcore cp -r --on '*' :/etc/nginx 'found/{{node.name}}'

A destination that ends in / gets the source under its name, else it is the new name. Every copy is
checked by SHA-256, and takes its place by a rename. A folder sends the files that differ; nothing is
removed there. The exit code is as of exec: 0 all copied, 1 one failed, 3 some could not be reached.`,
    )
    .action(async (words: readonly string[], flags: CopyFlags) => {
      process.exitCode = await copyFiles(flags, copyPlan(words, flags.on));
    });
  return command;
}

function parseMode(text: string): string {
  if (/^0?[0-7]{3}$/.test(text)) return text;
  throw new InvalidArgumentError("a mode is wanted: 644, 0600");
}

function parseOwner(text: string): CopyFlags["owner"] {
  const [, user, group] = /^(\w[\w.-]*)(?::(\w[\w.-]*))?$/.exec(text) ?? [];
  if (user !== undefined) return { user, ...(group !== undefined && { group }) };
  throw new InvalidArgumentError("a user is wanted, or USER:GROUP");
}
