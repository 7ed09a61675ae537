import { Command, InvalidArgumentError, Option } from "commander";
import { parseSize } from "#base/units.ts";
import { exitCodes, KcoreError } from "#errors/problem.ts";
import {
  addProjectOption,
  addViewOptions,
  parseAge,
  caPassphrase,
  parseCount,
  type CommonFlags,
  collect,
} from "../options.ts";
import { givenPassphrase } from "../terminal/given-passphrase.ts";
import type { RunHeader } from "#engine/run/run-folder.ts";
import { RunClient } from "#engine/run/run-client.ts";
import { whoAmI } from "../process/who.ts";
import { findProject } from "../project/find-project.ts";
import { exportFormats, type ExportFlags } from "../records/export.ts";
import { findRun, readRun } from "../records/known-run.ts";
import type { ListRunsFlags } from "./list-runs.ts";
import type { PruneFlags } from "../records/prune.ts";
import type { ReplayFlags } from "./replay.ts";
import type { ShowRunFlags } from "./show-run.ts";
import type { StatsFlags } from "./stats.ts";
import { viewFromFlags, type ViewFlags } from "../terminal/choose-view.ts";
import { relauncher } from "../watch/start-run.ts";
import { isFree, watchRun } from "../watch/watch-run.ts";
import { failedStates, runStates } from "../records/run-summary.ts";

interface ResumeFlags extends CommonFlags, ViewFlags {
  readonly detach?: boolean;
  readonly passphraseFile?: string;
}

/** `kcore runs list|stats|show|attach|resume|abort|replay|diff|export|prune`. */
export function runsCommand(): Command {
  const runs = new Command("runs").description("Recorded and living runs of this project").addHelpText(
    "after",
    `
An ID is that of “runs list”, its last four digits, or “last” for the newest run.

Examples:
  kcore runs list --failed --since 7d
  kcore runs show last                      who, when, what changed, what failed and why, what to do
  kcore runs attach last                    watch it live; q leaves, and the run goes on
  kcore runs resume a1b2                    go on where it stopped
  kcore runs replay last --speed 4          see it again; Space pauses
  kcore runs diff 20261121-061500-a1b2 last
  kcore runs export last --file run.xml     JUnit; also .ndjson .json .txt .md .html .cast .tar.gz
  kcore runs prune --keep 20 --older-than 30d`,
  );
  const add = (words: string, description: string, ...examples: string[]) =>
    addProjectOption(runs.command(words))
      .description(description)
      .addHelpText("after", `\nExamples:\n${examples.map((example) => `  kcore runs ${example}`).join("\n")}`);
  const result = (...formats: string[]) =>
    new Option("-o, --output <format>", "how to print").choices(formats).default(formats[0]);

  addRunFilter(
    add("list", "List runs, the newest last", "list --failed --since 7d", "list --node n1 --limit 5 -o json"),
    { limit: 30 },
  )
    .addOption(result("table", "json"))
    .action(async (flags: ListRunsFlags) => (await import("./list-runs.ts")).listRuns(flags));
  addRunFilter(
    add(
      "stats",
      "Tell which steps are slow, which fail now and then, and what each node needs",
      "stats --since 30d",
      "stats --node n1 -o json",
      "stats -o prometheus       gauges: the last run and the drift of each name",
    ),
    { limit: 100 },
  )
    .addOption(result("table", "json", "prometheus"))
    .action(async (flags: StatsFlags) => (await import("./stats.ts")).showStats(flags));
  add(
    "show <id>",
    "Show a run on one screen: operator, changes, failures with their reasons, next commands",
    "show last",
    "show last --events",
    "show last --node n2",
    "show last --times",
    "show 20261121-061500-a1b2 --html run.html",
  )
    .addOption(result("text", "json"))
    .addOption(
      new Option(
        "--events",
        "print every event instead, as the run showed it; with -o json one event a line",
      ).conflicts(["html", "node", "times"]),
    )
    .addOption(
      new Option(
        "--html <file>",
        "write the run's report for a browser instead: FILE.html, complete in itself",
      ).conflicts(["node", "times"]),
    )
    .option("--node <name>", "show the steps of this node: result, time, changes, the end of the output")
    .option("--times", "show the slowest steps, each with its share of the time; with --node those of this node")
    .action(async (id: string, flags: ShowRunFlags) => (await import("./show-run.ts")).showRun(id, flags));
  addViewOptions(
    add("attach <id>", "Watch a living run; the view may come and go", "attach last", "attach last --output plain"),
  ).action(attach);
  addViewOptions(add("resume <id>", "Go on with a run whose process died or that was stopped", "resume last"))
    .option("--detach", "leave as soon as the run has begun")
    .option(...caPassphrase)
    .action(resume);
  add(
    "abort <id>",
    "End a run, its running steps too; if its process died, free the nodes that it holds",
    "abort last",
    "abort 20261121-061500-a1b2",
  ).action(abort);
  addViewOptions(
    add(
      "replay <id>",
      "Show a recorded run as it came; at a terminal with pause, step, seek and speed",
      "replay last --speed 4",
      "replay last --output plain --speed max",
    ),
  )
    .addOption(
      new Option("--speed <factor>", "speed factor; max draws everything at once").argParser(parseSpeed).default(1),
    )
    .action(async (id: string, flags: ReplayFlags) => (await import("./replay.ts")).replayRun(id, flags));
  add(
    "diff <a> <b>",
    "Tell how two runs differ in outcome, changes and time, by node and step",
    "diff 20261121-061500-a1b2 last",
  )
    .addOption(result("table", "json"))
    .action(async (a: string, b: string, flags: CommonFlags & { readonly output: "table" | "json" }) =>
      (await import("./diff.ts")).diffTwoRuns(a, b, flags),
    );
  add(
    "export <id>",
    "Write a run in the format of another program, to a file or to stdout",
    "export last --file run.xml",
    "export last --format json | jq .failures",
  )
    .addOption(
      new Option("--format <format>", "the format; else that of the file's name, else ndjson").choices([
        ...exportFormats,
      ]),
    )
    .option("--file <file>", "the file, which only you may read; else stdout")
    .action(async (id: string, flags: ExportFlags) => (await import("../records/export.ts")).exportRun(id, flags));
  add(
    "prune",
    "Remove the records of ended runs: the newest 200 of 90 days, a GiB in all, stay unless told otherwise",
    "prune --dry-run",
    "prune --keep 20 --older-than 30d",
    "prune --max-size 300M --resumable",
  )
    .addOption(new Option("--keep <n>", "keep the newest n").argParser(parseCount))
    .addOption(new Option("--older-than <age>", "remove only runs older than this: 36h, 30d, 8w").argParser(parseAge))
    .addOption(
      new Option("--max-size <size>", "keep the newest up to this size in all: 300M, 2G").argParser(parseBytes),
    )
    .option("--resumable", "also remove runs that can still be resumed")
    .option("--dry-run", "say what would be removed; remove nothing")
    .action(async (flags: PruneFlags) => (await import("../records/prune.ts")).pruneRuns(flags));
  return runs;
}

function parseBytes(text: string): number {
  const bytes = parseSize(text);
  if (bytes !== undefined) return bytes;
  throw new InvalidArgumentError("a size is wanted: 300M, 2G");
}

function parseSpeed(text: string): number {
  const speed = text === "max" ? Infinity : Number(text);
  if (speed > 0) return speed;
  throw new InvalidArgumentError("a number above 0 is wanted, or max");
}

async function attach(id: string, { project, ...flags }: CommonFlags & ViewFlags): Promise<void> {
  const { folder } = await findRun(findProject(project), id);
  const view = viewFromFlags(flags);
  const relaunch = relauncher(folder, { isLive: view.output === "ink", detach: false });
  process.exitCode = (await watchRun({ folder, relaunch, ...view })).exitCode;
}

/** Whether `runs resume last` may mean the run: not a dry run, and not a single command. */
function isResumable({ request }: RunHeader): boolean {
  return !request.dryRun && request.what.kind !== "exec";
}

async function abort(id: string, { project }: CommonFlags): Promise<void> {
  const root = findProject(project);
  const { folder, model, alive } = await readRun(root, id);
  if (alive && model.state !== "finished") {
    const follower = new RunClient({ folder, by: whoAmI(), answers: false });
    follower.send({ type: "abort" });
    for await (const event of follower.events())
      if (event.type === "run.stopping") process.stdout.write(`run ${folder.id} is being aborted\n`);
    return;
  }
  const nodes = [...model.nodes.keys()];
  if (nodes.length === 0) return void process.stdout.write(`run ${folder.id} has ended, and touched no node\n`);
  await (await import("../adhoc/unlock-nodes.ts")).abandonNodes(folder.id, nodes, { project: root });
}

async function resume(id: string, { project, detach = false, passphraseFile, ...flags }: ResumeFlags): Promise<void> {
  const { folder, header, model, alive } = await readRun(findProject(project), id, isResumable);
  const view = viewFromFlags(flags);
  // This comes before the check of `alive`: a successful run's process waits until all views have read the end.
  if (model.exitCode === exitCodes.done)
    throw new KcoreError({
      code: "RUN_FINISHED",
      message: `run ${folder.id} ended well; there is nothing to resume`,
      hint: `to do it again: ${header.request.command}`,
    });
  // The process of a run that is over lives until its views have read the end.
  const isOver = model.exitCode !== undefined;
  if (alive && !(isOver && (await isFree(folder, header.process))))
    throw new KcoreError({
      code: "RUN_ALIVE",
      message: `run ${folder.id} is still going on`,
      hint: `kcore runs attach ${folder.id}`,
    });
  const passphrase = await givenPassphrase(passphraseFile);
  const relaunch = relauncher(folder, { isLive: view.output === "ink", passphrase, detach });
  const options = { folder, ...view, detach, launched: await relaunch(), relaunch, since: model.lastSeq };
  process.exitCode = (await watchRun(options)).exitCode;
}

/** The options that choose among runs. */
export function addRunFilter(command: Command, { limit }: { readonly limit: number }): Command {
  return command
    .option("--failed", `only runs that failed: ${failedStates.join(", ")}`)
    .addOption(
      new Option("--state <state>", `only runs in this state (repeatable): ${runStates.join(", ")}`).argParser(
        collectState,
      ),
    )
    .option("--node <name>", "only runs with this node (repeatable: with any of them)", collect)
    .addOption(
      new Option("--since <age|date>", "only runs that began since: 36h, 30d, 2026-11-21 (UTC)").argParser(parseSince),
    )
    .addOption(new Option("--limit <n>", "at most so many, the newest").argParser(parseCount).default(limit));
}

function collectState(text: string, earlier: readonly string[] | undefined): readonly string[] {
  if (!runStates.includes(text)) throw new InvalidArgumentError(`it is one of ${runStates.join(", ")}`);
  return collect(text, earlier);
}

function parseSince(text: string): number {
  const date = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : NaN;
  if (!Number.isNaN(date)) return date;
  try {
    return Date.now() - parseAge(text);
  } catch {
    throw new InvalidArgumentError("an age (36h, 30d) or a date (2026-11-21) is wanted");
  }
}
