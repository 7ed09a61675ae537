import { InvalidArgumentError, Option, type Command } from "commander";
import type { RunRequest } from "#engine/orchestrate/execute.ts";
import { launchRun, type Launched } from "#engine/run/launch-run.ts";
import { changeHeader, createRun, type RunFolder } from "#engine/run/run-folder.ts";
import { quoteWord } from "#tui/repeat-command.ts";
import { exitCodes, KcoreError } from "#errors/problem.ts";
import { defined } from "#optional/defined.ts";
import { addFactOptions, addProjectOption, collect, type CommonFlags, type FactFlags } from "../options.ts";
import { givenPassphrase } from "../terminal/given-passphrase.ts";
import { findProject } from "../project/find-project.ts";
import { canPrompt } from "../terminal/prompt.ts";
import { grantOption } from "./grant-option.ts";
import { watchRun, type Watched, type WatchOptions } from "./watch-run.ts";
import { runMain } from "../process/spare-process.ts";
import { whoAmI } from "../process/who.ts";
import { prepareReports, writeReports } from "../runs/write-reports.ts";

/** Flags of every command that starts a run. */
export interface RunFlags extends CommonFlags, FactFlags {
  readonly on?: readonly string[];
  readonly refreshFacts?: boolean;
  readonly dryRun?: boolean;
  readonly grant?: readonly string[];
  readonly skipHealth?: boolean;
  readonly wait?: boolean;
  readonly yes?: boolean;
  readonly concurrency?: number;
  readonly feed?: "bastion" | "nodes";
  readonly detach?: boolean;
  readonly passphraseFile?: string;
  readonly report?: readonly string[];
  readonly failOnChange?: boolean;
  readonly plan?: string;
}

/** The options that a run over nodes has; `full` adds those that only matter where something is changed. */
export function addRunOptions(command: Command, { full }: { readonly full: boolean }): Command {
  addProjectOption(command)
    .option(
      "--on <target>",
      "nodes: names, globs, role:R, dc:D, label:k=v, group:G, fact:NAME=V, /regex/, and, or, not (repeatable)",
      collect,
    )
    .option("--refresh-facts", "re-gather the facts used in --on first")
    .option("--wait", "wait for a node that another run holds instead of refusing")
    .addOption(new Option("--concurrency <n>", "at most so many nodes at a time").argParser(countOf));
  addFactOptions(command);
  return full ? addPlanOptions(addChangeOptions(command)) : command;
}

/** The options that tell whether a dry run says what is wanted. */
function addPlanOptions(command: Command): Command {
  return command
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
    .addOption(
      new Option(
        "--feed <who>",
        "who sends large contents: the bastion (the default), or nodes that have them already, for a thin line",
      ).choices(["bastion", "nodes"]),
    )
    .option("--yes", "answer every confirmation with yes")
    .option("--detach", "leave as soon as the run has begun; kcore runs attach ID comes back")
    .option("--passphrase-file <file>", "the passphrase of the cluster CA; else KCORE_CA_PASSPHRASE, else it is asked")
    .option(
      "--report <file>",
      "write a report at the end: FILE.html for a browser, FILE.xml for a CI, FILE.md for a comment, FILE.json for --plan and programs (repeatable)",
      collect,
    );
}

function countOf(text: string): number {
  const count = Number(text);
  if (Number.isInteger(count) && count > 0) return count;
  throw new InvalidArgumentError("a number of nodes is wanted, 1 or more");
}

/** The request that the flags make. */
export function requestOf(flags: RunFlags, what: RunRequest["what"], more: Partial<RunRequest> = {}): RunRequest {
  const {
    on,
    dryRun = false,
    grant = [],
    skipHealth = false,
    wait = false,
    yes = false,
    concurrency,
    context,
    factsAge,
  } = flags;
  return {
    what,
    params: {},
    dryRun,
    grants: grant,
    skipHealth,
    waitForLock: wait,
    yes,
    command: ["kcore", ...process.argv.slice(2)].map(quoteWord).join(" "),
    ...(on === undefined || on.length === 0
      ? {}
      : { on: on.length === 1 ? (on[0] as string) : on.map((one) => `(${one})`).join(" or ") }),
    ...(flags.feed === "nodes" && { feed: "nodes" }),
    ...defined({ concurrency, context }),
    ...(factsAge !== undefined && { factsSince: Date.now() - factsAge }),
    ...(flags.unknownFacts === "skip" && { unknownFacts: "skip" }),
    ...more,
  };
}

/**
 * Starts the run's own process and follows it as a view. Where disks were refused and whoever watches grants them, another run follows with
 * these grants, and what is told is how that one ended.
 */
export async function startRun(
  flags: RunFlags,
  request: RunRequest,
  watch: Pick<WatchOptions, "output" | "style" | "onEvent" | "noStay">,
): Promise<Watched & { readonly folder: RunFolder }> {
  const project = findProject(flags.project);
  const { detach = false, report = [], failOnChange = false } = flags;
  if (failOnChange && (!request.dryRun || detach))
    throw new KcoreError({
      code: "USAGE",
      message: `--fail-on-change tells what a dry run ended with${detach ? ", and with --detach nobody waits for that" : ""}`,
      hint: detach ? "leave --detach out" : "--dry-run --fail-on-change",
    });
  if (flags.refreshFacts)
    return startRun({ ...flags, refreshFacts: false }, await refreshFacts(project, flags, request), watch);
  await prepareReports(report);
  if (flags.plan !== undefined) await assertPlanned(flags.plan, flags, request);
  const passphrase = await givenPassphrase(flags.passphraseFile);
  const isLive = watch.output === "ink";
  const { folder, header } = await createRun({
    project,
    request,
    who: whoAmI(),
    created: Date.now(),
    attended: canPrompt() || isLive,
  });
  const launched = launch(folder, passphrase);
  const watched = await watchRun({
    folder,
    header,
    launched,
    relaunch: relauncher(folder, isLive, passphrase),
    detach,
    ...watch,
  });
  if (!watched.left) {
    await writeReports(report, folder);
    if (watch.style?.detail !== "quiet") for (const file of report) process.stderr.write(`Report written: ${file}\n`);
  } else if (report.length > 0)
    process.stderr.write(`No report was written, for the run goes on. At its end: kcore runs export ${folder.id}\n`);
  if (!watched.left) await (await import("../runs/prune.ts")).pruneEnded(project);
  if (failOnChange && watched.exitCode === exitCodes.done) {
    // Whoever leaves before the end has no answer.
    if (watched.left) return { ...watched, exitCode: exitCodes.interrupted, folder };
    if (await differs(watched.model)) return { ...watched, exitCode: exitCodes.differs, folder };
  }
  if (!mayAsk(watched, request, watch)) return { ...watched, folder };
  const { askForGrants } = await import("./typed-grants.ts");
  const grants = await askForGrants(watched.model);
  if (grants.length === 0) return { ...watched, folder };
  const command = [request.command, ...grants.map((grant) => `--grant ${quoteWord(grant)}`)].join(" ");
  return startRun(flags, { ...request, command, grants: [...request.grants, ...grants] }, watch);
}

/**
 * Gathers the facts of the nodes of which they decide whether the request means them, before it. Gives the
 * request that believes no older facts; of whom could not be reached they are not known.
 */
export async function refreshFacts(project: string, flags: RunFlags, request: RunRequest): Promise<RunRequest> {
  const [{ nodesOnFacts }, { ownRoster }, { tellWait }, { runHere }] = await Promise.all([
    import("#engine/roster/targets.ts"),
    import("../roster/own-roster.ts"),
    import("../adhoc/tell-wait.ts"),
    import("../adhoc/run-here.ts"),
  ]);
  const factsSince = Date.now();
  const nodes = request.on === undefined ? [] : nodesOnFacts(request.on, ownRoster(project));
  if (nodes.length > 0) {
    const { wait, concurrency } = flags;
    const own = { project, on: [nodes.map(({ name }) => name).join(",")], ...defined({ wait, concurrency }) };
    const command = `kcore facts --on ${quoteWord(own.on[0] ?? "")}`;
    await runHere(own, requestOf(own, { kind: "facts" }, { command }), tellWait);
  }
  return { ...request, factsSince };
}

/** A dry run that says that something would change, or that it cannot be told. */
async function differs(model: Watched["model"]): Promise<boolean> {
  const { tallyOfRun } = await import("#tui/tally.ts");
  const { wouldChange, unknown } = tallyOfRun(model);
  return wouldChange + unknown > 0;
}

/**
 * Makes a dry run of its own before the run, and lets that begin only if it says what the plan does.
 * @throws KcoreError FILE_UNREADABLE, PLAN_INVALID, PLAN_OUTDATED, and what stopped the dry run
 */
async function assertPlanned(file: string, given: RunFlags, request: RunRequest): Promise<void> {
  const { readPlan, holdToPlan } = await import("./hold-to-plan.ts");
  const { digestOf } = await import("../runs/print-digest.ts");
  const { readRun } = await import("../runs/known-run.ts");
  const { plan: _, report: __, detach: ___, ...flags } = given;
  const project = findProject(flags.project);
  const plan = await readPlan(file, project);
  const command = `${request.command} --dry-run`;
  const { folder } = await startRun(flags, { ...request, dryRun: true, command }, { output: "quiet" });
  holdToPlan(plan, await digestOf(await readRun(project, folder.id)));
}

/** A plan only tells; and who reads events or a result of their own types nothing. */
function mayAsk(
  { exitCode, left }: Watched,
  { dryRun }: RunRequest,
  { output }: Pick<WatchOptions, "output">,
): boolean {
  return exitCode === exitCodes.failed && !left && !dryRun && (output === "ink" || output === "plain");
}

/** Starts the process that drives a recorded run, or tells the one that was started beforehand. */
function launch(folder: RunFolder, passphrase?: string): Launched {
  return launchRun({ folder, program: runMain(), ...defined({ passphrase }) });
}

/** Lets a run go on, as it was planned, with whoever is there now to answer. @throws KcoreError RUN_OUTDATED */
export function relauncher(folder: RunFolder, isLive: boolean, passphrase?: string): () => Promise<Launched> {
  return async () => {
    const { assertAsPlanned } = await import("../process/planned-content.ts");
    await assertAsPlanned(folder);
    changeHeader(folder, { attended: canPrompt() || isLive });
    return launch(folder, passphrase);
  };
}
