import { InvalidArgumentError, Option, type Command } from "commander";
import { parseDuration } from "#base/units.ts";
import { usageError } from "#errors/problem.ts";
import { commandPath } from "./terminal/wrap-help.ts";

/** The flags of {@link addProjectOption}, which nearly every command has. */
export interface CommonFlags {
  readonly project?: string;
  readonly context?: string;
  readonly debug?: boolean;
}

/** The flag of commands that open the CA's keys (`withCaPassphrase`). */
export const caPassphrase = [
  "--passphrase-file <file>",
  "the passphrase of the CA's keys; else KCORE_CA_PASSPHRASE, else kcore asks",
] as const;

/** `--project`, `--context` and `--debug`. */
export function addProjectOption(command: Command): Command {
  return command
    .option("--project <dir>", "the project; else the nearest folder upwards with roster/ and orchestrate/")
    .option("--context <name>", "the cluster context to use instead of the current one")
    .option("--debug", "show stacks of errors");
}

/** Flags of commands that ask the cluster. */
export interface ClusterFlags extends CommonFlags {
  readonly controller?: readonly string[];
}

/** The common flags, and `-s`. */
export function addClusterOptions(command: Command): Command {
  return addProjectOption(command).option(
    "-s, --controller <host:port>",
    "ask this controller, not the context's (repeatable: the next is asked when one cannot be reached)",
    collect,
  );
}

/** Flags of commands that reach one machine by SSH, in the roster or not. */
export interface MachineFlags {
  readonly node?: string;
  readonly insecure?: boolean;
  readonly hostKey?: string;
  readonly identityFile?: string;
  readonly askPassword?: boolean;
  readonly passwordFile?: string;
}

/** Adds the flags of {@link MachineFlags}. */
export function addMachineOptions(command: Command): Command {
  return command
    .option(
      "--node <host:port>",
      "the machine, by SSH at this port; 9091, the agent's port, stands for the roster's SSH port, or 22",
    )
    .option("-k, --insecure", "show the host key of a new machine, ask, and pin it; nothing goes unverified")
    .option("--identity-file <file>", "the private key to log in with: ~/…, or relative to the project")
    .option("--host-key <sha256>", "pin the key of a new machine if it has this fingerprint, without asking")
    .option("--ask-password", "if the node does not accept our key yet, ask for the password and install the key")
    .option("--password-file <file>", "the same, with the first line of a file that only its owner may read");
}

/** Flags of commands whose targets may ask for facts. */
export interface FactFlags {
  readonly factsAge?: number;
  readonly unknownFacts?: "fail" | "skip";
}

/** `--facts-age` and `--unknown-facts`. */
export function addFactOptions(command: Command): Command {
  return command
    .addOption(
      new Option("--facts-age <age>", "for fact:… in targets, how old kept facts may be (7d unless given)").argParser(
        parseAge,
      ),
    )
    .addOption(
      new Option("--unknown-facts <how>", "nodes whose facts are needed but unknown: fail (default) or skip").choices([
        "fail",
        "skip",
      ]),
    );
}

export type ResultFormat = "table" | "wide" | "json" | "yaml";

export const allFormats: readonly ResultFormat[] = ["table", "wide", "json", "yaml"];

/** `-o`, the format of a command's result. */
export function addResultOption(command: Command, formats: readonly ResultFormat[] = ["table", "json"]): Command {
  return command.addOption(
    new Option("-o, --output <format>", "how to print the result").choices([...formats]).default(formats[0]),
  );
}

/**
 * `-o, --output`, the view of a run, which otherwise depends on the terminal (`chooseView`). The other flags set the form
 * of lines and the end of the live view.
 */
export function addViewOptions(command: Command): Command {
  return command
    .addOption(
      new Option(
        "-o, --output <view>",
        "how to show the run: ink (live; the default at a terminal), plain (lines), json (one event a line)",
      ).choices(["ink", "plain", "json"]),
    )
    .addOption(new Option("--quiet", "lines: only failures; nothing when all goes well").conflicts("verbose"))
    .option("--verbose", "lines: every step, also those in order")
    .option("--times", "lines: each with its time (UTC)")
    .option("--no-stay", "close the live view when the run ends, even after a failure");
}

/** The parser of a repeatable option: the values in their order. */
export function collect(value: string, earlier: readonly string[] = []): readonly string[] {
  return [...earlier, value];
}

/** The count that an option's value says, 0 or more. @throws InvalidArgumentError */
export function parseCount(text: string): number {
  const count = Number(text);
  if (Number.isInteger(count) && count >= 0 && text !== "") return count;
  throw new InvalidArgumentError("a whole number is wanted");
}

/** The age that an option's value says, in milliseconds. @throws InvalidArgumentError */
export function parseAge(text: string): number {
  // No seconds: `30s` for `30d` would remove nearly all.
  const seconds = /^\d+[mhdw]$/.test(text) ? parseDuration(text) : undefined;
  if (seconds !== undefined) return seconds * 1000;
  throw new InvalidArgumentError("an age is wanted: 90m, 36h, 30d, 8w");
}

/**
 * Lets flags that stand before the subcommand count as if they stood after it: `kcore -s A get nodes -s B` asks A, then
 * B. A flag of no use to the subcommand is refused.
 * @throws KcoreError USAGE
 */
export function inheritOptions(command: Command): void {
  for (let above = command.parent; above; above = above.parent)
    for (const option of above.options) {
      const name = option.attributeName();
      // `--debug` counts wherever it stands: start.ts reads it from the words.
      if (above.getOptionValueSource(name) !== "cli" || name === "debug") continue;
      if (!command.options.some((own) => own.attributeName() === name))
        throw usageError(
          `${commandPath(command)} has no use for ${option.long ?? option.flags}`,
          `${commandPath(command)} --help`,
        );
      const given: unknown = above.getOptionValue(name);
      const own: unknown = command.getOptionValueSource(name) === "cli" ? command.getOptionValue(name) : undefined;
      const value =
        Array.isArray(given) && Array.isArray(own) ? [...(given as unknown[]), ...(own as unknown[])] : (own ?? given);
      command.setOptionValueWithSource(name, value, "cli");
    }
}
