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
  readonly had: Had;
}

/** By node, a hash of the commit and the work that passes brought it to. */
export type Had = Readonly<Record<string, string>>;

/** Compares the nodes with the clone's commit by a dry run, and applies the differences within the limits. @throws KcoreError */
export async function applyDifferences(
  project: string,
  flags: ReconcileFlags,
  {
    revision,
    failed,
    had: earlier,
  }: { readonly revision: string; readonly failed: FailedRun | undefined; readonly had: Had },
): Promise<Applied> {
  // The settings of the commit that is applied count, not those of the commit before.
  const limits = reconcileSettings(project);
  const work = workOf(project, limits);
  const model = await lookFor(work, flags, false);
  const { drifts, had, hashOf } = withOwed(project, { revision, work, earlier }, driftsOf(model));
  const hash = hashText(JSON.stringify([revision, namesOf(drifts)]));
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
  const common = { ...decision, drifts, had };
  if (decision.waits !== undefined) return { ...common, ...held, outcome: "pending", exitCode: exitCodes.differs };
  if (apply.length === 0) return { ...common, ...held, ...endOf(drifts) };
  const narrow: Work = { ...work, ...(work.on !== undefined && { on: apply.join(",") }) };
  const { what, ...rest } = narrow;
  // Without a view: the run's record and its notices tell about it.
  const request = requestOf(flags, what, { ...rest, command: commandOf(narrow) });
  const { exitCode, folder, model: ran } = await startRun(flags, request, { output: "quiet" });
  const whole = [...ran.nodes.values()].flatMap(({ name, outcome }) =>
    outcome === "done" ? [[name, hashOf(name)]] : [],
  );
  const after = { ...common, run: folder.id, had: { ...had, ...(Object.fromEntries(whole) as Had) } };
  if (exitCode === exitCodes.done) return { ...after, ...endOf(drifts), outcome: "applied" };
  const tries = (before?.tries ?? 0) + 1;
  const again = { hash, tries, left: Math.min(mostLeft, 2 ** tries - 1) };
  return { ...after, outcome: "failed", exitCode, failed: again };
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
 * the nodes that owe nothing. A run of the same work counts as a pass does; a run of other work does not.
 */
function withOwed(
  project: string,
  { revision, work, earlier }: { readonly revision: string; readonly work: Work; readonly earlier: Had },
  found: readonly NodeDrift[],
) {
  const { nodes } = ownRoster(project);
  const { what, params } = work;
  const workText = JSON.stringify([what, params]);
  const hashOf = (node: string): string => hashText(JSON.stringify([nodes.get(node)?.id, revision, workText]));
  const isUnseen = (name: string): boolean => nodes.has(name) && !found.some(({ node }) => node === name);
  const had = Object.fromEntries(Object.entries(earlier).filter(([name]) => isUnseen(name)));
  const drifts = found.map((drift): NodeDrift => {
    const { node, outcome, differs, unknown, always } = drift;
    const entry = nodes.get(node);
    if (!entry) return drift;
    const before = revisionOf(project, entry);
    const isAtIt = before?.isWhole === true && before.revision === revision && before.dirty !== true;
    const gotIt = isAtIt && JSON.stringify([before.what, before.params]) === workText;
    const hasIt = gotIt || earlier[node] === hashOf(node);
    const owed = hasIt ? [] : [...unknown, ...always];
    const isInOrder = outcome === "done" && differs.length + owed.length === 0;
    if (hasIt || isInOrder) had[node] = hashOf(node);
    if (isInOrder && !isAtIt)
      keepRevision(project, node, {
        id: entry.id,
        at: Date.now(),
        revision,
        dirty: false,
        isWhole: true,
        what,
        params,
      });
    if (outcome !== "done" || differs.length > 0 || hasIt) return drift;
    return { ...drift, differs: owed, unknown: [], always: [] };
  });
  return { drifts, had, hashOf };
}

function hashText(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
