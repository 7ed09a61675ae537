import type { Problem } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import type { SourceNode } from "#engine/yaml/node.ts";
import type { Problems } from "#engine/yaml/problems.ts";
import { referencesOf } from "#engine/expressions/references.ts";
import type { StageSource } from "./stage-source.ts";

/** What may rest on the outputs of earlier stages. */
function lateNodes({ when, work }: StageSource): readonly SourceNode[] {
  const args = work.kind === "apply" ? work.with : work.args;
  return [when, args].filter((node) => node !== undefined);
}

/** Registered names of other stages that the stage's `when` and arguments use. */
export function restsOf(stage: StageSource): ReadonlySet<string> {
  return new Set(lateNodes(stage).flatMap((node) => [...referencesOf(node).stages]));
}

/** Every `stages.NAME` must be an earlier stage's; which nodes a stage concerns must not rest on any. */
export function checkReferences(stages: readonly StageSource[], problems: Problems): void {
  check(stages, [], problems);
}

function check(stages: readonly StageSource[], before: readonly string[], problems: Problems): void {
  const known = [...before];
  const all = [...before, ...stages.map(({ register }) => register)];
  for (const stage of stages) {
    for (const node of lateNodes(stage))
      for (const name of problems.attempt(() => referencesOf(node).stages) ?? [])
        if (!known.includes(name))
          problems.add(unknownStage(stage, node, { name, known, isLater: all.includes(name) }));
    for (const node of fixedNodes(stage))
      for (const name of problems.attempt(() => referencesOf(node).stages) ?? []) problems.add(tooEarly(name, node));
    // What cleans up after a stage runs when that stage failed: its own outputs are not there.
    check(stage.onFailure, known, problems);
    known.push(stage.register);
  }
}

function fixedNodes({ on, node }: StageSource): readonly SourceNode[] {
  const keys = ["batch", "concurrency", "maxFailures", "timeout"];
  return [on, ...keys.map((key) => node.get(key))].filter((found) => found !== undefined);
}

function unknownStage(
  { id }: StageSource,
  { at }: SourceNode,
  { name, known, isLater }: { readonly name: string; readonly known: readonly string[]; readonly isLater: boolean },
): Problem {
  const message = isLater
    ? `stage “${id}” rests on “stages.${name}”, which comes later`
    : `stage “${id}” rests on “stages.${name}”, which there is not`;
  const hint = isLater
    ? "only earlier stages have given something"
    : suggestHint(name, known, known.length === 0 ? "no stage comes before it" : `earlier ones: ${known.join(", ")}`);
  return { code: "STAGE_INVALID", message, at, ...(hint !== undefined && { hint }) };
}

function tooEarly(name: string, { at }: SourceNode): Problem {
  return {
    code: "STAGE_INVALID",
    message: `this must be known before the run starts, it cannot rest on “stages.${name}”`,
    at,
    hint: "use params, node, nodes or vars; “when” may rest on what stages gave",
  };
}
