import { Option, type Command } from "commander";

/** Flags that every command knows. */
export interface CommonFlags {
  readonly project?: string;
  readonly context?: string;
  readonly debug?: boolean;
}

/** `--project`, `--context` and `--debug`. */
export function addProjectOption(command: Command): Command {
  return command
    .option("--project <dir>", "the project; else the nearest folder upwards with roster/ and orchestrate/")
    .option("--context <name>", "the cluster context to use instead of the current one")
    .option("--debug", "show stacks of errors");
}

export type ResultFormat = "table" | "wide" | "json" | "yaml";

/** `-o`, how a command's result is printed. */
export function addResultOption(command: Command, formats: readonly ResultFormat[] = ["table", "json"]): Command {
  return command.addOption(
    new Option("-o, --output <format>", "how to print the result").choices([...formats]).default(formats[0]),
  );
}

/** Collects a repeatable option. */
export function collect(value: string, earlier: readonly string[] = []): readonly string[] {
  return [...earlier, value];
}
