import { createHash } from "node:crypto";
import { keepRevision, revisionOf } from "#engine/orchestrate/node-revisions.ts";
import { exitCodes, type ExitCode } from "#errors/problem.ts";
import { ownProblems } from "#tui/tally.ts";
import { commandOf, driftsOf, lookFor, namesOf, workOf, type NodeDrift, type Work } from "../drift/look-for-drift.ts";
import type { CommonFlags } from "../options.ts";
import { reconcileSettings } from "../project/project-settings.ts";
import { ownRoster } from "../roster/own-roster.ts";
import { givenPassphrase } from "../terminal/given-passphrase.ts";
import { requestOf } from "../watch/run-request.ts";
import { startRun } from "../watch/start-run.ts";
import { decide, isAway, needsGrant, questionsOf, type Decision } from "./decide.ts";

export interface ReconcileFlags extends CommonFlags {
  readonly passphraseFile?: string;
  readonly output: "table" | "json";
}

/** The differences for which a run failed, as a hash, and the number of passes that leave it alone: each failure doubles the number. */
export interface FailedRun {
  readonly hash: string;
  readonly tries: number;
  readonly left: number;
}

/** The most passes that leave a failed run alone: a day, at ten minutes each. */
const mostLeft = 143;

/** The result of a pass over the nodes. */
export interface Applied extends Pick<Decision, "notices" | "waits"> {
  readonly outcome: "in order" | "applied" | "pending" | "failed";
  readonly exitCode: ExitCode;
  readonly drifts: readonly NodeDrift[];
  readonly run?: string;
  readonly failed?: FailedRun;
}

/** Compares the nodes with the clone's commit by a dry run, and applies the differences within the limits. @throws KcoreError */
export async function applyDifferences(
  project: string,
  flags: ReconcileFlags,
  { revision, failed }: { readonly revision: string; readonly failed: FailedRun | undefined },
): Promise<Applied> {
  // The settings of the commit that is applied count, not those of the commit before.
  const limits = reconcileSettings(project);
  const work = workOf(project, limits);
  const model = await lookFor(work, flags, false);
  const drifts = withOwed(project, revision, work, driftsOf(model));
  const hash = createHash("sha256")
    .update(JSON.stringify([revision, namesOf(drifts)]))
    .digest("hex");
  const before = failed?.hash === hash ? failed : undefined;
  const { apply, ...decision } = decide({
    drifts,
    limits,
    problems: ownProblems(model),
    questions: questionsOf(model, (await givenPassphrase(flags.passphraseFile)) !== undefined),
    command: commandOf(work),
    takesNodes: work.on !== undefined,
    isHeld: before !== undefined && before.left > 0,
    now: Date.now(),
  });
  const held = before && { failed: { ...before, left: Math.max(0, before.left - 1) } };
  const common = { ...decision, drifts };
  if (decision.waits !== undefined) return { ...common, ...held, outcome: "pending", exitCode: exitCodes.differs };
  if (apply.length === 0) return { ...common, ...held, ...endOf(drifts) };
  const narrow: Work = { ...work, ...(work.on !== undefined && { on: apply.join(",") }) };
  const { what, ...rest } = narrow;
  // Without a view: the run's record and its notices tell about it.
  const request = requestOf(flags, what, { ...rest, command: commandOf(narrow) });
  const { exitCode, folder } = await startRun(flags, request, { output: "quiet" });
  if (exitCode === exitCodes.done) return { ...common, ...endOf(drifts), outcome: "applied", run: folder.id };
  const tries = (before?.tries ?? 0) + 1;
  const again = { hash, tries, left: Math.min(mostLeft, 2 ** tries - 1) };
  return { ...common, outcome: "failed", exitCode, run: folder.id, failed: again };
}

/** The end of a pass that applied nothing, or all. */
function endOf(drifts: readonly NodeDrift[]): Pick<Applied, "outcome" | "exitCode"> {
  const broken = drifts.filter((drift) => drift.outcome !== "done" && !isAway(drift));
  if (!broken.every(needsGrant)) return { outcome: "failed", exitCode: exitCodes.failed };
  if (broken.length > 0) return { outcome: "pending", exitCode: exitCodes.differs };
  return { outcome: "in order", exitCode: drifts.some(isAway) ? exitCodes.unreachable : exitCodes.done };
}

/**
 * The differences, with the steps that a node owes to the commit: those that only a run tells run once for each commit. Keeps the revision of
 * the nodes that owe nothing.
 */
function withOwed(project: string, revision: string, { what, params }: Work, drifts: readonly NodeDrift[]) {
  const { nodes } = ownRoster(project);
  return drifts.map((drift): NodeDrift => {
    const { node, outcome, differs, unknown, always } = drift;
    const entry = nodes.get(node);
    const before = entry && revisionOf(project, entry);
    const hasIt = before?.isWhole === true && before.revision === revision && before.dirty !== true;
    if (!entry || outcome !== "done" || differs.length > 0 || hasIt) return drift;
    const owed = [...unknown, ...always];
    const kept = { id: entry.id, at: Date.now(), revision, dirty: false, isWhole: true, what, params };
    if (owed.length === 0) keepRevision(project, node, kept);
    return { ...drift, differs: owed };
  });
}
