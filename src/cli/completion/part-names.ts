import { foldersOf } from "#engine/project/folders.ts";
import { loadOrchestration } from "#engine/orchestrate/load-orchestration.ts";
import { statesOf, type States } from "#engine/states/open-states.ts";
import { placesOf, projectIfAny } from "../project/find-project.ts";

/** A step or stage of the typed work, as `--only`, `--from` and `--tags` choose it. */
interface Part {
  readonly value: string;
  readonly description: string;
  readonly tags: readonly string[];
}

/** The stages and steps of an orchestration, or the steps of states. @throws KcoreError for a file that cannot be read */
export function partsOf(kind: "orchestration" | "states", names: readonly string[]): readonly Part[] {
  const places = placesOf(projectIfAny(undefined));
  const states = statesOf(places);
  if (kind === "states") return names.flatMap((name) => stepsOf(states, name));
  const { stages } = loadOrchestration(names[0] ?? "", foldersOf("orchestrate", places));
  const applied = stages.flatMap(({ work }) => (work.kind === "apply" ? work.states : []));
  const steps = applied.filter(({ each }) => !each).flatMap(({ name }) => stepsOf(states, name));
  return [...stages.map(({ id, title, tags }) => ({ value: id, description: title, tags })), ...steps];
}

function stepsOf(states: States, name: string): readonly Part[] {
  const steps = states.readPartly(name).state?.steps ?? [];
  return steps.flatMap((step) =>
    step.kind === "module"
      ? [{ value: step.id, description: name, tags: step.tags }]
      : stepsOf(states, step.include).map((inner) => ({ ...inner, tags: [...step.tags, ...inner.tags] })),
  );
}
