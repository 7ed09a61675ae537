import { omitUndefined } from "#base/omit-undefined.ts";
import type { RunModel } from "#engine/events/run-model.ts";
import { revisionOf } from "#engine/orchestrate/node-revisions.ts";
import { FACTS_AGE, keptFacts } from "#engine/roster/kept-facts.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import { matchTargets } from "#engine/roster/targets.ts";
import { recordRuns } from "#engine/run/run-trail.ts";
import { exitCodes, usageError, type ExitCode } from "#errors/problem.ts";
import { ownProblems } from "#tui/tally.ts";
import { whoAmI } from "../process/who.ts";
import { findProject } from "../project/find-project.ts";
import { readSettings } from "../project/project-settings.ts";
import { ownRoster } from "../roster/own-roster.ts";
import { printRows } from "../terminal/format-result.ts";
import { printProblems } from "../terminal/report-failure.ts";
import { toStderr } from "../terminal/say.ts";
import { requestOf, type RunFlags } from "../watch/run-request.ts";
import {
  awayOf,
  driftsOf,
  lookFor,
  namesOf,
  stepName,
  whatOf,
  workOf,
  workOn,
  type NodeDrift,
  type Work,
} from "./look-for-drift.ts";

export interface DriftFlags extends RunFlags {
  readonly output: "table" | "json";
}

/** `kcore drift`: compares nodes with the project by dry runs, and prints the differences by node and step. */
export async function findDrift(names: readonly string[], flags: DriftFlags): Promise<ExitCode> {
  const project = findProject(flags.project);
  const { on, command } = requestOf(flags, { kind: "ping" });
  const nodes = selectNodes(project, on, flags);
  const models: RunModel[] = [];
  for (const work of worksOf(project, names, nodes, on)) models.push(await lookFor(work, flags));
  const drifts = models.flatMap(driftsOf).filter(({ node }) => nodes.some(({ name }) => name === node));
  const about = omitUndefined({ revision: models[0]?.revision, dirty: models[0]?.dirty });
  const found = { differs: namesOf(drifts), away: awayOf(drifts), ...about };
  recordRuns(project, Date.now(), { type: "drift.found", who: whoAmI(), command, ...found });
  const rows = drifts.flatMap(rowsOf);
  printRows(
    { ...about, nodes: drifts },
    flags.output,
    ["NODE", "STEP", "MODULE", "DIFFERENCE"],
    rows,
    "no step differs",
  );
  printProblems(models.flatMap(ownProblems), project);
  const failed = models.map(({ exitCode }) => exitCode).find((code) => code !== undefined && code !== exitCodes.done);
  if (failed !== undefined) return failed as ExitCode;
  return drifts.some(({ differs, unknown }) => differs.length + unknown.length > 0)
    ? exitCodes.differs
    : exitCodes.done;
}

function selectNodes(project: string, on: string | undefined, flags: DriftFlags): readonly NodeEntry[] {
  const roster = ownRoster(project);
  const since = Date.now() - (flags.factsAge ?? FACTS_AGE);
  const facts = keptFacts({ project, since, skipUnknown: flags.unknownFacts === "skip" });
  return on === undefined ? [...roster.nodes.values()] : matchTargets(on, { ...roster, facts });
}

/** The work to look at: the named one, else the one of the project's settings, else the last work of each node. @throws KcoreError USAGE */
function worksOf(
  project: string,
  names: readonly string[],
  nodes: readonly NodeEntry[],
  on: string | undefined,
): readonly Work[] {
  if (names.length > 0)
    return [workOn(project, { what: whatOf(project, names), params: {}, ...omitUndefined({ on }) })];
  const { reconcile } = readSettings(project);
  if (reconcile) {
    const work = workOf(project, reconcile);
    return [on === undefined || work.on === undefined ? work : { ...work, on: `(${work.on}) and (${on})` }];
  }
  const known = nodes.map((node) => ({ node: node.name, last: revisionOf(project, node) }));
  const without = known.flatMap(({ node, last }) => (last ? [] : node)).join(", ");
  const works = Object.groupBy(
    known.flatMap(({ node, last }) => (last ? { node, what: last.what, params: last.params } : [])),
    ({ what, params }) => JSON.stringify([what, params]),
  );
  const hint = "name an orchestration or states: kcore drift web --on 'role:web'; or set reconcile in kcore.yaml";
  if (Object.keys(works).length === 0)
    throw usageError("no run recorded here has applied anything to these nodes", hint);
  if (without !== "") toStderr(`no run recorded here has applied anything to ${without}`);
  return Object.values(works).flatMap((of = []) => {
    const [first] = of;
    return first ? workOn(project, { ...first, on: of.map(({ node }) => node).join(",") }) : [];
  });
}

function rowsOf({ node, outcome, differs, unknown, left, problem }: NodeDrift): readonly (readonly string[])[] {
  return [
    ...differs.map((step) => [node, stepName(step), step.module, step.changes.map(changeText).join(", ")]),
    ...unknown.map((step) => [node, stepName(step), step.module, `cannot be told ${step.reason ?? ""}`]),
    ...left.map((text) => [node, "", "", text]),
    ...(outcome === "done" ? [] : [[node, "", "", `${outcome}${problem ? `: ${problem.message}` : ""}`]]),
  ];
}

function changeText({ name, have, want }: NodeDrift["differs"][number]["changes"][number]): string {
  return name === "content" ? name : `${name}: ${have ?? "nothing"} instead of ${want}`;
}
