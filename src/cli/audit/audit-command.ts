import { Command, InvalidArgumentError, Option } from "commander";
import type { TrailHead } from "#audit/chain.ts";
import { addClusterOptions, addResultOption, allFormats, parseAge, parseCount } from "../options.ts";
import type { ShowTrailsFlags } from "./show-trails.ts";
import type { VerifyFlags } from "./verify-trails.ts";

/** `kcore audit show|verify`. */
export function auditCommand(): Command {
  const audit = new Command("audit").description("The tamper-evident audit log of runs and changes").addHelpText(
    "after",
    `
Every run of this project, and every change that a controller was asked for, is an entry that carries the SHA-256 of the entry before.

Examples:
  kcore audit show --since 1d
  kcore audit show --controllers -o json | jq 'map(select(.method == "rejectNode"))'
  kcore audit verify`,
  );
  const add = (name: string, description: string, ...examples: string[]) =>
    addResultOption(addClusterOptions(audit.command(name)), allFormats)
      .description(description)
      .option("--runs", "the runs of this project only")
      .option("--controllers", "the cluster's controllers only")
      .addHelpText("after", `\nExamples:\n${examples.map((example) => `  kcore audit ${example}`).join("\n")}`);
  add(
    "show",
    "Show who did what, the newest last",
    "show --since 36h",
    "show --runs --limit 5 -o json",
    "show --origin 3f9a1c2e",
  )
    .addOption(new Option("--since <age>", "only entries newer than this: 90m, 36h, 30d, 8w").argParser(parseAge))
    .addOption(new Option("--limit <n>", "at most so many").argParser(parseCount).default(50))
    .option(
      "--origin <id>",
      "instead of trails: the keys whose last write came from this controller, which may be a removed one",
    )
    .action(async (flags: ShowTrailsFlags) => (await import("./show-trails.ts")).showTrails(flags));
  add(
    "verify",
    "Find out whether an entry, or the record of a run, was changed, added or removed; exits 1 then",
    "verify",
    "verify --runs --head 412:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
  )
    .addOption(
      new Option("--head <n:sha256>", "a head of the runs' trail that you kept elsewhere").argParser(parseHead),
    )
    .action(async (flags: VerifyFlags) => (await import("./verify-trails.ts")).verifyTrails(flags));
  return audit;
}

function parseHead(text: string): TrailHead {
  const [, n, hash] = /^([1-9]\d{0,14}):([0-9a-f]{64})$/.exec(text) ?? [];
  if (n !== undefined && hash !== undefined) return { n: Number(n), hash };
  throw new InvalidArgumentError("NUMBER:SHA-256 is wanted, as “kcore audit verify” prints it");
}
