import type { Problem } from "#errors/problem.ts";
import type { RunModel } from "#engine/events/run-model.ts";

/** Problems of the run itself, without those that a node, a step or an action has told already. */
export function ownProblems(model: RunModel): readonly Problem[] {
  if (model.problems.length === 0) return [];
  const nodes = [...model.nodes.values()];
  const told = [...nodes, ...nodes.flatMap(({ steps }) => steps), ...model.stages.flatMap(({ actions }) => actions)];
  return model.problems.filter(
    ({ code, message }) => !told.some(({ problem }) => problem?.code === code && problem.message === message),
  );
}
