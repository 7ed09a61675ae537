import type { Problem } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import type { Problems } from "#engine/yaml/problems.ts";
import { type Requisite, requisiteKeys, type StepSource } from "./step-source.ts";

/** Reports ids that two steps of a state share, and requisites that name no earlier step. The expansion checks names of other states (`state/id`). */
export function checkRequisites(steps: readonly StepSource[], problems: Problems): void {
  const all = new Map<string, StepSource>();
  for (const step of steps) {
    const first = step.id === undefined ? undefined : all.get(step.id);
    if (first !== undefined)
      problems.add({
        code: "STATE_ID_DUPLICATE",
        message: `a step “${step.id}” is there already, in line ${first.at.line}`,
        at: step.at,
        hint: "give it an id of its own",
      });
    else if (step.id !== undefined) all.set(step.id, step);
  }
  const earlier: string[] = [];
  for (const step of steps) {
    for (const key of requisiteKeys)
      for (const requisite of step.requisites[key])
        if (!earlier.includes(requisite.name)) problems.add(...badName(requisite, step, earlier, all));
    if (step.id !== undefined) earlier.push(step.id);
  }
}

function badName(
  { name, at }: Requisite,
  step: StepSource,
  earlier: readonly string[],
  all: ReadonlyMap<string, StepSource>,
): Problem[] {
  if (name === step.id) return [unknown(`“${name}” waits for itself`, at)];
  const later = all.get(name);
  if (later !== undefined)
    return [unknown(`“${name}” stands below, in line ${later.at.line}`, at, "steps run in file order: move it up")];
  return name.includes("/") ? [] : [unknownRequisite({ name, at }, earlier)];
}

/** The problem of a requisite that names no earlier step. */
export function unknownRequisite({ name, at }: Requisite, earlier: readonly string[]): Problem {
  const hint = suggestHint(
    name,
    earlier,
    earlier.length === 0 ? "no step comes before it" : `earlier steps: ${earlier.slice(0, 12).join(", ")}`,
  );
  return unknown(`no earlier step is called “${name}”`, at, hint);
}

function unknown(message: string, at: Requisite["at"], hint?: string): Problem {
  return { code: "STATE_REQUISITE_UNKNOWN", message, at, hint };
}
