import type { RunModel } from "#engine/events/run-model.ts";
import { titleOf } from "#engine/orchestrate/run-types.ts";
import type { RunHeader } from "#engine/run/run-folder.ts";
import { KcoreError } from "#errors/problem.ts";
import { loadContext } from "#pki/contexts.ts";
import { endingsHere } from "../cluster/keep-operator.ts";
import { contextHome } from "../process/kcore-home.ts";
import { gitState } from "../process/git-state.ts";
import { readRun } from "../records/known-run.ts";
import { failedStates, findRuns, type RunSummary } from "../records/run-summary.ts";
import type { CommonFlags } from "../options.ts";
import type { Finding } from "./findings.ts";

/** The number of newest runs in which the last good one is looked for. */
const mostRuns = 200;
/** Changed steps that a note names. */
const mostChanges = 12;

const timeOf = (milliseconds: number): string => `${new Date(milliseconds).toISOString().slice(0, 16)}Z`;

/** The findings of this machine: its certificates, runs that live or failed, and the changes since the last good run. */
export async function ownFindings(
  project: string,
  { context, node, since }: Pick<CommonFlags, "context"> & { readonly node?: string; readonly since: number },
): Promise<readonly Finding[]> {
  const [certificates, runs] = await Promise.all([certificateFindings(context), runFindings(project, node, since)]);
  return [...certificates, ...runs];
}

async function certificateFindings(context: string | undefined): Promise<readonly Finding[]> {
  try {
    const found = await loadContext(contextHome(), ...(context === undefined ? [] : [context]));
    return (await endingsHere(found, Date.now())).map(({ message, isFailure }) => ({
      severity: isFailure ? "error" : "warning",
      topic: "bastion",
      cause: message,
      nodes: ["bastion"],
      evidence: [],
      remedy: "kcore rotate certs",
    }));
  } catch (error) {
    if (!(error instanceof KcoreError)) throw error;
    const [problem] = error.problems;
    if (!problem || (problem.code === "PKI_CONTEXT_UNKNOWN" && context === undefined)) return [];
    const { message, hint } = problem;
    return [
      {
        severity: "error",
        topic: "bastion",
        cause: message,
        nodes: ["bastion"],
        evidence: [],
        ...(hint && { remedy: hint }),
      },
    ];
  }
}

async function runFindings(project: string, node: string | undefined, since: number): Promise<readonly Finding[]> {
  const all = await findRuns(project, { limit: mostRuns, ...(node !== undefined && { node: [node] }) });
  // Runs that change nothing, this one too, explain nothing.
  const runs = all.filter(({ header }) => !header.request.dryRun && header.created < since);
  const living = runs.filter(({ isOver }) => !isOver).map(livingRun);
  const last = runs.findLast(({ isOver }) => isOver);
  const failed = last && failedStates.includes(last.state) ? [await failedRun(project, last)] : [];
  return [...living, ...failed, ...(await changesSince(project, runs))];
}

function livingRun({ folder: { id }, header, nodes }: RunSummary): Finding {
  const cause = `run ${id} of ${header.who} is at work: ${workOf(header)}`;
  return { severity: "warning", topic: "runs", cause, nodes, evidence: [], remedy: `kcore runs attach ${id}` };
}

/** The work of a run, without words of the operator that may hold a secret. */
function workOf({ request: { what } }: RunHeader): string {
  return what.kind === "exec" ? "exec" : titleOf(what);
}

async function failedRun(project: string, { folder: { id }, state, nodes, started }: RunSummary): Promise<Finding> {
  const { model } = await readRun(project, id);
  const evidence = [...model.nodes.values()].flatMap(({ name, problem }) =>
    problem ? [`${name}: ${problem.message} [${problem.code}]`] : [],
  );
  const cause = `the last run ended as ${state} (${id}, ${timeOf(started)})`;
  return {
    severity: "warning",
    topic: "runs",
    cause,
    nodes,
    evidence,
    remedy: `kcore runs show ${id}, then kcore runs resume ${id}`,
  };
}

/** The changes of runs since the last good one, and whether the project is at another commit. */
async function changesSince(project: string, runs: readonly RunSummary[]): Promise<readonly Finding[]> {
  // A part of a run leaves the rest as it was, and proves nothing of it.
  const at = runs.findLastIndex(({ state, header }) => state === "done" && !header.request.part);
  const good = runs[at];
  if (!good) return [];
  const later = await Promise.all(runs.slice(at + 1).map(({ folder: { id } }) => readRun(project, id)));
  const changed = later.flatMap(({ model, folder: { id } }) =>
    changedSteps(model).map((line) => `${line} (run ${id})`),
  );
  const { revision, dirty } = await gitState(project);
  const before = good.header.revision;
  const moved =
    before === undefined || revision === undefined || before === revision
      ? []
      : [
          `the project was at ${before.slice(0, 12)} and is at ${revision.slice(0, 12)}: git diff ${before.slice(0, 12)}`,
        ];
  const evidence = [...moved, ...(dirty ? ["the project has uncommitted changes: git status"] : []), ...changed];
  if (evidence.length === 0) return [];
  const cause = `since the last good run (${good.folder.id}, ${timeOf(good.started)}) this has changed`;
  const shown = evidence.slice(0, mostChanges);
  const more = evidence.length > shown.length ? [`and ${evidence.length - shown.length} more`] : [];
  return [
    { severity: "note", topic: "runs", cause, nodes: [], evidence: [...shown, ...more], remedy: "kcore runs list" },
  ];
}

function changedSteps({ nodes }: RunModel): readonly string[] {
  return [...nodes.values()].flatMap(({ name, steps }) =>
    steps.filter(({ outcome }) => outcome === "changed").map(({ step }) => `${name}: ${step}`),
  );
}
