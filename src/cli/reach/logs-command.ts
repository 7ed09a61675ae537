import { Command, InvalidArgumentError, Option } from "commander";
import { parseDuration } from "#base/units.ts";
import { addFactOptions, addProjectOption, collect, parseCount } from "../options.ts";
import { addTargetOption } from "../watch/run-options.ts";
import { requireTarget } from "../watch/run-request.ts";
import { showLogs } from "./show-logs.ts";

type LogsFlags = Parameters<typeof showLogs>[0];

/** `kcore logs [NODE…]`. */
export function logsCommand(): Command {
  return addFactOptions(addTargetOption(addProjectOption(new Command("logs"))))
    .description("Show the journals of nodes in one stream, by time")
    .argument("[nodes...]", "nodes, as --on selects them")
    .option("-u, --unit <unit>", "only entries of this unit (repeatable)", collect)
    .option("-f, --follow", "go on with later entries, until Ctrl-C")
    .addOption(new Option("--since <age>", "only entries that are not older: 90s, 10m, 2d").argParser(parseSince))
    .addOption(
      new Option("-n, --lines <n>", "the last entries of each node; 100 unless --since is given").argParser(parseCount),
    )
    .option("--grep <pattern>", "only messages that match, as for journalctl --grep")
    .addOption(
      new Option("-o, --output <format>", "plain, or json: one entry a line")
        .choices(["plain", "json"])
        .default("plain"),
    )
    .addHelpText(
      "after",
      `
Examples:
  kcore logs n1
  kcore logs --on 'role:worker' -u kubelet -f
  kcore logs n1 n2 -u ssh --since 10m --grep 'Failed|error'
  kcore logs '*' --since 1h -o json | jq -r .message

Lines are TIME NODE UNIT: TEXT, in UTC. With -f, entries of several nodes are put in order every
half second. A lost connection ends the log of that node alone; stderr names it at the end.`,
    )
    .action(async (nodes: readonly string[], { on = [], ...flags }: LogsFlags) => {
      const targeted = { ...flags, on: [...nodes, ...on] };
      requireTarget(targeted, "logs");
      process.exitCode = await showLogs(targeted);
    });
}

/** The argument of `journalctl --since`: the age counts by each node's own clock. */
function parseSince(text: string): string {
  const seconds = parseDuration(text);
  if (seconds !== undefined) return `-${Math.round(seconds * 1000)}ms`;
  throw new InvalidArgumentError("an age is wanted: 90s, 10m, 36h, 2d");
}
