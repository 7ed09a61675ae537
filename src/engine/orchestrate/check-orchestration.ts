import { KcoreError, type Problem } from "#errors/problem.ts";
import type { Folder } from "#engine/project/folders.ts";
import { bindParams } from "#engine/params/bind-params.ts";
import type { Roster } from "#engine/roster/roster.ts";
import { openParams } from "#engine/states/check-states.ts";
import { Problems } from "#engine/yaml/problems.ts";
import type { BindContext, Catalogue } from "./bind-context.ts";
import { resolveTargets } from "./given-params.ts";
import { UsedNames } from "./used-names.ts";
import { loadOrchestration, type Orchestration } from "./load-orchestration.ts";
import { StageOutputs } from "./outputs.ts";
import { registeredNames, type PlannedStage } from "./plan.ts";
import { namesGiven, renderStage } from "./prepare.ts";
import { StageMaker } from "./waves.ts";

export interface OrchestrationGround {
  readonly folders: readonly Folder[];
  /** Absent: it could not be read, so only files are looked at. */
  readonly roster?: Roster;
  readonly catalogue: Catalogue;
  readonly run: Readonly<Record<string, unknown>>;
  /** The nodes that a target parameter without a default is taken to name; absent: any of the roster. */
  readonly on?: string;
}

/**
 * Checks an orchestration with every node that its stages concern. Parameters without a default are open. A target without
 * one may be any node: then only what is wrong on all nodes of a stage is told, since it may be meant for some.
 */
export async function checkOrchestration(name: string, ground: OrchestrationGround): Promise<readonly Problem[]> {
  const problems = new Problems();
  try {
    const orchestration = loadOrchestration(name, ground.folders);
    if (ground.roster && ground.roster.nodes.size > 0)
      await checkStages(orchestration, { ...ground, roster: ground.roster }, problems);
  } catch (error) {
    if (!(error instanceof KcoreError)) throw error;
    problems.add(...error.problems);
  }
  return problems.list;
}

type Ground = OrchestrationGround & { readonly roster: Roster };

async function checkStages(orchestration: Orchestration, ground: Ground, problems: Problems): Promise<void> {
  const stages = await stagesFor(orchestration, ground, ground.on ?? "*", problems);
  const isOpen = ground.on === undefined ? await openStages(orchestration, ground, stages) : () => false;
  const outputs = new StageOutputs(registeredNames(stages), []);
  for (const stage of stages) {
    const found: (readonly Problem[])[] = [];
    for (const name of stage.nodes ?? [undefined]) {
      const node = name === undefined ? undefined : ground.roster.nodes.get(name);
      const scope = outputs.seenBy(node);
      const own = new Problems();
      const made = await renderStage(stage, scope, own, ground.catalogue.readSecret);
      outputs.expect(stage.register, name, namesGiven(stage, made));
      // What follows a failure concerns nodes of its own, or each node of the stage.
      for (const inner of stage.onFailure)
        if (inner.nodes === undefined || node === undefined || inner.nodes.includes(node.name))
          await renderStage(inner, scope, own, ground.catalogue.readSecret);
      if (made !== "left-out" || own.list.length > 0) found.push(own.list);
    }
    problems.add(...(isOpen(stage) ? common(found) : found.flat()));
  }
}

/** The stages with target parameters that have no default as these nodes. */
async function stagesFor(
  orchestration: Orchestration,
  { roster, catalogue, run }: Ground,
  on: string,
  problems: Problems,
): Promise<readonly PlannedStage[]> {
  const { name, params: declared, target } = orchestration;
  const fixed = { nodes: roster.nodes, run };
  const given = openParams(declared);
  for (const param of given.keys()) if (declared.get(param)?.type === "target") given.set(param, { text: on });
  const { readSecret } = catalogue;
  const bound = await bindParams(declared, given, { owner: `the orchestration “${name}”`, scope: fixed, readSecret });
  const params = resolveTargets(declared, bound, roster, (param) => declared.get(param)?.default?.at);
  const mine = target && params[target.name];
  const context: BindContext = {
    roster,
    scope: { ...fixed, params },
    conditions: [],
    catalogue,
    skipHealth: false,
    problems,
    usedNames: new UsedNames(),
  };
  const { stages, onFailure } = await new StageMaker(
    orchestration,
    context,
    typeof mine === "string" ? mine.split(",") : [],
  ).make();
  return [...stages, ...onFailure];
}

/** Tells which stages have other nodes when the target is one node: those concern whom the target names. */
async function openStages(
  orchestration: Orchestration,
  ground: Ground,
  stages: readonly PlannedStage[],
): Promise<(stage: PlannedStage) => boolean> {
  const [first = "*"] = ground.roster.nodes.keys();
  const narrow = await stagesFor(orchestration, ground, first, new Problems());
  const nodesOf = (all: readonly PlannedStage[], id: string) => all.find((stage) => stage.id === id)?.nodes?.join(",");
  return ({ id }) => nodesOf(stages, id) !== nodesOf(narrow, id);
}

/** What is wrong on every node; and what a node's own entry in the roster is to blame for. */
function common(found: readonly (readonly Problem[])[]): readonly Problem[] {
  const counts = new Map<string, number>();
  for (const list of found) for (const key of new Set(list.map(keyOf))) counts.set(key, (counts.get(key) ?? 0) + 1);
  return found
    .flat()
    .filter((problem) => counts.get(keyOf(problem)) === found.length || problem.at?.file.startsWith("roster/"));
}

function keyOf({ code, at }: Problem): string {
  return JSON.stringify([code, at?.file, at?.line, at?.column]);
}
