import type { Problem } from "#errors/problem.ts";
import type { Folder } from "#engine/project/folders.ts";
import type { Roster } from "#engine/roster/roster.ts";
import { unknownsWithoutDefault } from "#engine/states/check-states.ts";
import { Problems } from "#engine/yaml/problems.ts";
import type { Catalogue } from "./bind-context.ts";
import { loadOrchestration, type Orchestration } from "./load-orchestration.ts";
import { StageOutputs } from "./outputs.ts";
import { registeredNames, type PlannedStage } from "./plan.ts";
import { renderFor } from "./prepare.ts";
import { makeStages } from "./make-stages.ts";

export interface OrchestrationCheckInput {
  readonly folders: readonly Folder[];
  /** Absent if the nodes are not known: then only the files are checked. */
  readonly roster?: Roster;
  readonly catalogue: Catalogue;
  readonly run: Readonly<Record<string, unknown>>;
  /** The nodes of each target parameter without a default; absent: any node of the roster. */
  readonly on?: string;
}

/**
 * Checks an orchestration with every node of its stages. Parameters without a default stay unknown. For a target without a
 * default, reports only problems that a stage has on all nodes: the file may be meant for some of them.
 */
export async function checkOrchestration(name: string, input: OrchestrationCheckInput): Promise<readonly Problem[]> {
  const problems = new Problems();
  const { roster } = input;
  await problems.attemptAsync(async () => {
    const orchestration = loadOrchestration(name, input.folders);
    if (roster && roster.nodes.size > 0) await checkStages(orchestration, { ...input, roster }, problems);
  });
  return problems.list;
}

type InputWithRoster = OrchestrationCheckInput & { readonly roster: Roster };

async function checkStages(orchestration: Orchestration, input: InputWithRoster, problems: Problems): Promise<void> {
  const { roster, catalogue } = input;
  const stages = await stagesFor(orchestration, input, input.on ?? "*", problems);
  const dependsOnTarget = input.on === undefined ? await targetTest(orchestration, input, stages) : () => false;
  const outputs = new StageOutputs(registeredNames(stages), []);
  for (const stage of stages) {
    const found: (readonly Problem[])[] = [];
    for (const name of stage.nodes ?? [undefined]) {
      const own = new Problems();
      const made = await renderFor(name, stage, { roster, outputs, problems: own, read: catalogue.readSecret });
      if (made !== "left-out" || own.list.length > 0) found.push(own.list);
    }
    problems.add(...(dependsOnTarget(stage) ? commonProblems(found) : found.flat()));
  }
}

/** The stages for one value of the target parameters that have no default. */
async function stagesFor(
  orchestration: Orchestration,
  { roster, catalogue, run }: InputWithRoster,
  on: string,
  problems: Problems,
): Promise<readonly PlannedStage[]> {
  const { params: declared } = orchestration;
  const given = unknownsWithoutDefault(declared);
  for (const param of given.keys()) if (declared.get(param)?.type === "target") given.set(param, { text: on });
  const placeOf = (param: string) => declared.get(param)?.default?.at;
  const input = { given, roster, catalogue, run, skipHealth: false, problems, placeOf };
  const { stages, onFailure } = await makeStages(orchestration, input);
  return [...stages, ...onFailure];
}

/** Makes the test whether a stage's nodes depend on the target: a target of one node gives such a stage other nodes. */
async function targetTest(
  orchestration: Orchestration,
  input: InputWithRoster,
  stages: readonly PlannedStage[],
): Promise<(stage: PlannedStage) => boolean> {
  const [first = "*"] = input.roster.nodes.keys();
  const narrow = await stagesFor(orchestration, input, first, new Problems());
  const nodesOf = (all: readonly PlannedStage[], id: string) => all.find((stage) => stage.id === id)?.nodes?.join(",");
  return ({ id }) => nodesOf(stages, id) !== nodesOf(narrow, id);
}

/** The problems that all nodes have, and the problems at a place in the roster. */
function commonProblems(found: readonly (readonly Problem[])[]): readonly Problem[] {
  const counts = new Map<string, number>();
  for (const list of found) for (const key of new Set(list.map(placeKey))) counts.set(key, (counts.get(key) ?? 0) + 1);
  return found
    .flat()
    .filter((problem) => counts.get(placeKey(problem)) === found.length || problem.at?.file.startsWith("roster/"));
}

function placeKey({ code, at }: Problem): string {
  return JSON.stringify([code, at?.file, at?.line, at?.column]);
}
