import { InvalidArgumentError, Option, type Command } from "commander";
import { addFactOptions, addProjectOption, caPassphrase, collect } from "../options.ts";
import { grantPattern } from "#engine/session/own-grants.ts";
import { usageError } from "#errors/problem.ts";

/** `--on`. */
export function addTargetOption(command: Command): Command {
  return command.option(
    "--on <target>",
    "nodes: names, globs, role:R, dc:D, label:k=v, group:G, fact:NAME=V, /regex/, and, or, not (repeatable)",
    collect,
  );
}

/** The options of a run over nodes; `full` adds the options of runs that may change something. */
export function addRunOptions(command: Command, { full }: { readonly full: boolean }): Command {
  addTargetOption(addProjectOption(command))
    .option("--refresh-facts", "re-gather the facts used in --on first")
    .option("--wait", "wait for a node that another run holds instead of refusing")
    .addOption(new Option("--concurrency <n>", "at most so many nodes at a time").argParser(parseNodeCount));
  addFactOptions(command);
  return full ? addPartOptions(addPlanOptions(addChangeOptions(command))) : command;
}

/** The options that choose a part of a run's work. */
function addPartOptions(command: Command): Command {
  return command
    .option("--only <name>", "only this step or stage (repeatable): STEP, STATE/STEP or the stage's id", collect)
    .option("--from <name>", "only this step or stage and those behind it")
    .option("--tags <tags>", "only steps and stages with one of these tags: a,b (repeatable)", collect)
    .option("--limit <target>", "only these nodes of those that the run would take")
    .option("--batch <n|share>", "so many nodes, 2 or 25%, then the next ones, in every stage", (text) =>
      /^(?:[1-9]\d?|100)%$/.test(text) ? text : parseNodeCount(text),
    );
}

function addPlanOptions(command: Command): Command {
  return command
    .option("--require-clean", "refuse a project with files that differ from its commit")
    .option(
      "--require-signed",
      "refuse a commit without a signature that this machine's git trusts; the files must equal it",
    )
    .option("--fail-on-change", "with --dry-run: end with 4 where something would change or cannot be told")
    .addOption(
      new Option(
        "--plan <file>",
        "refuse to do anything that this plan (the --report FILE.json of a dry run at this commit) does not list",
      ).conflicts(["dryRun", "failOnChange"]),
    );
}

/** The options of a run that may change something. */
export function addChangeOptions(command: Command): Command {
  return command
    .option("--dry-run", "show what would change; change nothing")
    .addOption(grantOption())
    .option("--queue <url>", "let the workers of this queue have the nodes; else as kcore.yaml says")
    .option("--no-queue", "let this machine have all nodes, though kcore.yaml names a queue")
    .addOption(
      new Option(
        "--feed <who>",
        "the sender of large contents: the bastion (the default), or nodes that have them already, for a thin line",
      ).choices(["bastion", "nodes"]),
    )
    .option("--yes", "answer every confirmation with yes")
    .option("--detach", "leave as soon as the run has begun; kcore runs attach ID comes back")
    .option(...caPassphrase)
    .addOption(reportOption());
}

/** `--report`, of each command that can write its run as a file. */
export function reportOption(): Option {
  return new Option(
    "--report <file>",
    "write a report at the end: FILE.html for a browser, FILE.xml for a CI, FILE.md for a comment, FILE.json for --plan and programs (repeatable)",
  ).argParser(collect);
}

function parseNodeCount(text: string): number {
  const count = Number(text);
  if (Number.isInteger(count) && count > 0) return count;
  throw new InvalidArgumentError("a number of nodes is wanted, 1 or more");
}

/** `--grant`, of each command that may wipe a disk. */
export function grantOption(): Option {
  return new Option(
    "--grant <disk:contents>",
    "allow wiping this disk while it holds exactly these contents, as a refusal prints both; @NODE behind the grant limits it to that node (repeatable)",
  ).argParser((given: string, earlier: readonly string[] | undefined) => collect(parseGrant(given), earlier));
}

/** The grant; one without contents is refused, as it grants nothing. @throws KcoreError USAGE */
function parseGrant(given: string): string {
  if (grantPattern.test(given)) return given;
  const name = given.split(/[:@]/)[0] || "S3Z8NB0K";
  throw usageError(
    `--grant ${given} names no contents that may go, and so grants nothing`,
    `--grant ${name}:9f2c…, as the refusal of a dry run prints it: the disk, and 16 hex digits of what it holds`,
  );
}
