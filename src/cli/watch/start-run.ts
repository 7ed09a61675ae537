import type { RunRequest } from "#engine/orchestrate/run-types.ts";
import { launchRun, type LaunchedRun } from "#engine/run/launch-run.ts";
import { changeHeader, createRun, type RunFolder } from "#engine/run/run-folder.ts";
import { quoteWord } from "#tui/repeat-command.ts";
import { exitCodes, usageError } from "#errors/problem.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { givenPassphrase } from "../terminal/given-passphrase.ts";
import { findProject } from "../project/find-project.ts";
import { canPrompt } from "../terminal/prompt.ts";
import type { RunFlags } from "./run-request.ts";
import { watchRun, type WatchResult, type WatchOptions } from "./watch-run.ts";
import { driveHere, mayDrive } from "../process/drive-here.ts";
import { runMain } from "../process/warm-process.ts";
import { whoAmI } from "../process/who.ts";
import { prepareReports, writeReports } from "../records/export.ts";

/**
 * Starts the run, in a process of its own where a terminal is, and follows the run as a view. If the run refused disks and
 * the operator grants them, starts another run with these grants and returns its result. @throws KcoreError USAGE, and as watchRun, writeReports and readPlan
 */
export async function startRun(
  flags: RunFlags,
  request: RunRequest,
  watch: Pick<WatchOptions, "output" | "style" | "onEvent" | "noStay">,
): Promise<WatchResult & { readonly folder: RunFolder }> {
  const project = findProject(flags.project);
  const { detach = false, report = [], failOnChange = false } = flags;
  if (failOnChange && (!request.dryRun || detach))
    throw usageError(
      `--fail-on-change tells what a dry run ended with${detach ? ", and with --detach no process waits for that" : ""}`,
      detach ? "leave --detach out" : "--dry-run --fail-on-change",
    );
  if (flags.refreshFacts) {
    const { refreshFacts } = await import("./run-here.ts");
    return startRun({ ...flags, refreshFacts: false }, await refreshFacts(project, flags, request), watch);
  }
  await prepareReports(report);
  if (flags.plan !== undefined) {
    const params = await requirePlanned(flags.plan, flags, request);
    return startRun(omitUndefined({ ...flags, plan: undefined }), { ...request, params }, watch);
  }
  const passphrase = await givenPassphrase(flags.passphraseFile);
  const isLive = watch.output === "ink";
  const { folder, header } = await createRun({
    project,
    request,
    who: whoAmI(),
    created: Date.now(),
    attended: canPrompt() || isLive,
  });
  const launched = launch(folder, { passphrase, detach });
  const watched = await watchRun({
    folder,
    header,
    launched,
    relaunch: relauncher(folder, { isLive, passphrase, detach }),
    detach,
    ...watch,
  });
  if (!watched.leftEarly) {
    await writeReports(report, folder);
    if (watch.style?.detail !== "quiet") for (const file of report) process.stderr.write(`Report written: ${file}\n`);
  } else if (report.length > 0)
    process.stderr.write(`No report was written, for the run goes on. At its end: kcore runs export ${folder.id}\n`);
  if (!watched.leftEarly) await (await import("../records/prune.ts")).pruneEnded(project);
  if (failOnChange && watched.exitCode === exitCodes.done) {
    // An operator who leaves before the end gets no answer to --fail-on-change.
    if (watched.leftEarly) return { ...watched, exitCode: exitCodes.interrupted, folder };
    if (await differs(watched.model)) return { ...watched, exitCode: exitCodes.differs, folder };
  }
  if (!mayAskForGrants(watched, request, watch)) return { ...watched, folder };
  const { askForGrants } = await import("./typed-grants.ts");
  const grants = await askForGrants(watched.model);
  if (grants.length === 0) return { ...watched, folder };
  const command = [request.command, ...grants.map((grant) => `--grant ${quoteWord(grant)}`)].join(" ");
  return startRun(flags, { ...request, command, grants: [...request.grants, ...grants] }, watch);
}

/** Whether a dry run found a change, or cannot exclude one. */
async function differs(model: WatchResult["model"]): Promise<boolean> {
  const { tallyOfRun } = await import("#tui/tally.ts");
  const { wouldChange, unknown } = tallyOfRun(model);
  return wouldChange + unknown > 0;
}

/**
 * Makes a dry run first, and lets the run begin only if the dry run equals the plan. Resolves with the parameters of the dry run.
 * @throws KcoreError FILE_UNREADABLE, PLAN_INVALID, PLAN_OUTDATED, and the problems that stopped the dry run
 */
async function requirePlanned(file: string, runFlags: RunFlags, request: RunRequest): Promise<RunRequest["params"]> {
  const { readPlan, holdToPlan } = await import("./hold-to-plan.ts");
  const { digestRecord } = await import("../records/print-digest.ts");
  const { readRun } = await import("../records/known-run.ts");
  const { plan: _, report: __, detach: ___, ...flags } = runFlags;
  const project = findProject(flags.project);
  const plan = await readPlan(file, project);
  const command = `${request.command} --dry-run`;
  const { folder } = await startRun(flags, { ...request, dryRun: true, command }, { output: "quiet" });
  const run = await readRun(project, folder.id);
  holdToPlan(plan, await digestRecord(run));
  return run.header.request.params;
}

/** Whether to ask for grants after a run: not after a dry run, nor if the output is for a program. */
function mayAskForGrants(
  { exitCode, leftEarly }: WatchResult,
  { dryRun }: RunRequest,
  { output }: Pick<WatchOptions, "output">,
): boolean {
  return exitCode === exitCodes.failed && !leftEarly && !dryRun && (output === "ink" || output === "plain");
}

interface Launching {
  readonly passphrase?: string | undefined;
  /** Whether the command ends before the run. */
  readonly detach: boolean;
}

/** Starts the process of a recorded run, or gives the run to the warm process; without a terminal drives the run here. */
function launch(folder: RunFolder, { passphrase, detach }: Launching): LaunchedRun {
  if (!detach && mayDrive()) return driveHere(folder, passphrase);
  return launchRun({ folder, program: runMain(), ...omitUndefined({ passphrase }) });
}

/**
 * Returns a function that resumes a run; the run asks questions if an operator is present then. It throws RUN_OUTDATED
 * for a changed project.
 */
export function relauncher(
  folder: RunFolder,
  { isLive, ...launching }: Launching & { readonly isLive: boolean },
): () => Promise<LaunchedRun> {
  return async () => {
    const { refuseChangedProject } = await import("../process/refuse-changed-project.ts");
    await refuseChangedProject(folder);
    changeHeader(folder, { attended: canPrompt() || isLive });
    return launch(folder, launching);
  };
}
