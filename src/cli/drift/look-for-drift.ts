import { omitUndefined } from "#base/omit-undefined.ts";
import type { NodeOutcome } from "#engine/events/event.ts";
import type { NodeModel, RunModel, StepModel } from "#engine/events/run-model.ts";
import { listOrchestrations, loadOrchestration } from "#engine/orchestrate/load-orchestration.ts";
import { noLongerManaged } from "#engine/orchestrate/managed.ts";
import type { RunRequest } from "#engine/orchestrate/run-types.ts";
import { foldersOf } from "#engine/project/folders.ts";
import type { Problem } from "#errors/problem.ts";
import { causeIn, itemTitle, withoutWave } from "#tui/work-item.ts";
import { quoteWord } from "#tui/repeat-command.ts";
import { placesOf } from "../project/find-project.ts";
import type { ReconcileSettings } from "../project/project-settings.ts";
import { runHere } from "../watch/run-here.ts";
import { requestOf, type RunFlags } from "../watch/run-request.ts";
import { tellWait } from "../watch/step-results.ts";

/** Work that nodes shall have; `on` is absent if an orchestration names its nodes itself. */
export type Work = Pick<RunRequest, "what" | "params" | "on">;

/** The differences of one node from the project. */
export interface NodeDrift {
  readonly node: string;
  /** The end of the node's dry run. */
  readonly outcome: NodeOutcome;
  readonly differs: readonly StepDrift[];
  /** Steps of which the dry run cannot tell. */
  readonly unknown: readonly StepDrift[];
  /** Steps without a probe, which each run carries out: there is nothing to compare, so they never differ. */
  readonly always: readonly StepDrift[];
  /** Warnings of things that no step manages any more. */
  readonly left: readonly string[];
  readonly problem?: Problem;
}

type StepDrift = Pick<StepModel, "stage" | "title" | "module" | "changes" | "diff" | "reason">;

/** The orchestration of that name, else the states of these names. */
export function whatOf(project: string, names: readonly string[]): RunRequest["what"] {
  const [name = ""] = names;
  const known = listOrchestrations(foldersOf("orchestrate", placesOf(project)));
  return names.length === 1 && known.has(name) ? { kind: "orchestration", name } : { kind: "state", names };
}

/** The work on nodes, all without `on`. An orchestration without a target parameter names its nodes itself. */
export function workOn(project: string, { what, params, on = "*" }: Work): Work {
  const takesNodes =
    what.kind !== "orchestration" ||
    loadOrchestration(what.name, foldersOf("orchestrate", placesOf(project))).target !== undefined;
  return { what, params, ...(takesNodes && { on }) };
}

/** The work that the project's settings name. */
export function workOf(project: string, { run, on }: ReconcileSettings): Work {
  const { orchestrate: name, state: names = [], params } = run;
  const what = name === undefined ? ({ kind: "state", names } as const) : ({ kind: "orchestration", name } as const);
  return workOn(project, { what, params, ...omitUndefined({ on }) });
}

/** The command that carries work out. */
export function commandOf({ what, params, on }: Work): string {
  const names =
    what.kind === "state" ? ["state", "apply", ...what.names] : ["orchestrate", "name" in what ? what.name : ""];
  const given = Object.keys(params).length === 0 ? [] : ["--params", JSON.stringify(params)];
  return ["kcore", ...names, ...(on === undefined ? [] : ["--on", on]), ...given].map(quoteWord).join(" ");
}

/** Makes a dry run of work, without a record. `isAudited`: whether it leaves an entry in the audit trail. @throws KcoreError with every problem of the input */
export async function lookFor({ what, ...rest }: Work, flags: RunFlags, isAudited = true): Promise<RunModel> {
  const { on: _, ...own } = flags;
  const request = requestOf(own, what, { ...rest, dryRun: true });
  return (await runHere(own, request, tellWait, { isAudited })).model;
}

/** The differences that a dry run found, by node. */
export function driftsOf({ nodes, warnings }: RunModel): readonly NodeDrift[] {
  return [...nodes.values()].map((node) => ({
    node: node.name,
    outcome: node.outcome ?? "interrupted",
    differs: stepsOf(node, ({ outcome, always }) => outcome === "would-change" && !always),
    unknown: stepsOf(node, ({ outcome }) => outcome === "unknown"),
    always: stepsOf(node, ({ outcome, always }) => outcome === "would-change" && always),
    left: warnings.flatMap(({ node: about, text }) =>
      about === node.name && text.startsWith(noLongerManaged) ? text : [],
    ),
    ...omitUndefined({ problem: causeIn(node.steps)?.problem ?? node.problem }),
  }));
}

function stepsOf({ steps }: NodeModel, isWanted: (step: StepModel) => boolean): readonly StepDrift[] {
  return steps.filter(isWanted).map(({ stage, title, module, changes, diff, reason }) => ({
    stage: withoutWave(stage),
    title,
    module,
    changes,
    ...omitUndefined({ diff, reason }),
  }));
}

/** The steps that differ, by node, as the audit trail keeps them: at most twenty of a node. */
export function namesOf(drifts: readonly NodeDrift[]): Readonly<Record<string, readonly string[]>> {
  const differing = drifts.filter(({ differs }) => differs.length > 0);
  return Object.fromEntries(differing.map(({ node, differs }) => [node, differs.slice(0, 20).map(stepName)]));
}

/** The nodes that could not be compared, or not whole. */
export function awayOf(drifts: readonly NodeDrift[]): readonly string[] {
  return drifts.flatMap(({ node, outcome }) => (outcome === "done" ? [] : node));
}

/** A step as tables name it: `web: issue`. */
export function stepName({ stage, title }: Pick<StepDrift, "stage" | "title">): string {
  return itemTitle({ stage, title });
}
