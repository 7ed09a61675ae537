import { InvalidArgumentError, Option, type Command } from "commander";
import { ageOf, collect, countOf } from "../options.ts";
import { runStates } from "./run-states.ts";

/** Which runs are meant. */
export interface RunFilter {
  /** At most so many, the newest. */
  readonly limit: number;
  readonly state?: readonly string[];
  readonly failed?: boolean;
  readonly node?: readonly string[];
  /** Milliseconds since the epoch. */
  readonly since?: number;
}

/** What `--failed` means: they did not get to their end, and nobody wanted that. */
export const failedStates: readonly string[] = ["failed", "unreachable", "died"];

/** The options that choose among runs. */
export function addRunFilter(command: Command, { limit }: { readonly limit: number }): Command {
  return command
    .option("--failed", `only runs that failed: ${failedStates.join(", ")}`)
    .addOption(
      new Option("--state <state>", `only runs in this state (repeatable): ${runStates.join(", ")}`).argParser(stateOf),
    )
    .option("--node <name>", "only runs with this node (repeatable: with any of them)", collect)
    .addOption(
      new Option("--since <age|date>", "only runs that began since: 36h, 30d, 2026-11-21 (UTC)").argParser(sinceOf),
    )
    .addOption(new Option("--limit <n>", "at most so many, the newest").argParser(countOf).default(limit));
}

function stateOf(text: string, earlier: readonly string[] | undefined): readonly string[] {
  if (!runStates.includes(text)) throw new InvalidArgumentError(`it is one of ${runStates.join(", ")}`);
  return collect(text, earlier);
}

function sinceOf(text: string): number {
  const date = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : NaN;
  if (!Number.isNaN(date)) return date;
  try {
    return Date.now() - ageOf(text);
  } catch {
    throw new InvalidArgumentError("an age (36h, 30d) or a date (2026-11-21) is wanted");
  }
}
