import type { Problem } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import type { SourceNode } from "#engine/yaml/node.ts";
import type { Problems } from "#engine/yaml/problems.ts";
import { referencesOf } from "#engine/expressions/references.ts";
import type { Inclusion } from "./inclusion.ts";
import { ALL_NODES } from "./plan.ts";
import type { StageSource } from "./stage-source.ts";

/** The values of a stage that may use outputs of earlier stages. */
function lateNodes({ when, work }: StageSource): readonly SourceNode[] {
  const args = work.kind === "apply" ? work.with : work.args;
  return defined(when, args);
}

/** Registered names of other stages that the stage's `when` and arguments use. */
export function dependenciesOf(stage: StageSource): ReadonlySet<string> {
  const around = stage.within.flatMap(({ when }) => when ?? []);
  return new Set([...around, ...lateNodes(stage)].flatMap((node) => [...referencesOf(node).stages]));
}

/** By stage name, the nodes whose values the stage uses (`stages.NAME.NODE`; "" is its own node), if it uses another node's values. */
export function othersOf(
  stage: StageSource,
  nodes: ReadonlyMap<string, unknown>,
): ReadonlyMap<string, ReadonlySet<string>> {
  const others = new Map<string, Set<string>>();
  for (const node of lateNodes(stage))
    for (const [root, name, key] of referencesOf(node).paths) {
      if (root !== "stages" || name === undefined) continue;
      const used = others.get(name) ?? new Set();
      const isOther = key !== undefined && (key === ALL_NODES || nodes.has(key));
      others.set(name, used.add(isOther ? key : ""));
    }
  return new Map([...others].filter(([, used]) => used.size > 1 || !used.has("")));
}

/** Reports each `stages.NAME` that is no earlier stage, and each use of a stage's outputs for a stage's nodes, pace or state names. */
export function checkReferences(
  { stages, onFailure }: { readonly stages: readonly StageSource[]; readonly onFailure: readonly StageSource[] },
  problems: Problems,
): void {
  check(stages, [], problems);
  check(
    onFailure,
    stages.map(({ register }) => register),
    problems,
  );
}

function check(stages: readonly StageSource[], before: readonly string[], problems: Problems): void {
  const known = [...before];
  const all = [...before, ...stages.map(({ register }) => register)];
  const refuse = (who: string, late: readonly SourceNode[], fixed: readonly SourceNode[]): void => {
    for (const [node, name] of namesIn(late, problems))
      if (!known.includes(name)) problems.add(unknownStage(who, node, { name, known, isLater: all.includes(name) }));
    for (const [node, name] of namesIn(fixed, problems)) problems.add(tooEarly(name, node));
  };
  let last: Inclusion | undefined;
  for (const stage of stages) {
    // Reading an included file checked its own references.
    const [include] = stage.within;
    if (include === undefined) refuse(`stage “${stage.id}”`, lateNodes(stage), fixedNodes(stage));
    else if (include !== last)
      refuse(`the include of “${include.include}”`, defined(include.when), defined(include.with));
    last = include;
    // The `onFailure` stages of a failed stage cannot use its outputs: there are none.
    if (include === undefined) check(stage.onFailure, known, problems);
    known.push(stage.register);
  }
}

function namesIn(nodes: readonly SourceNode[], problems: Problems): (readonly [SourceNode, string])[] {
  return nodes.flatMap((node) =>
    [...(problems.attempt(() => referencesOf(node).stages) ?? [])].map((name) => [node, name] as const),
  );
}

function defined<T>(...values: readonly (T | undefined)[]): T[] {
  return values.filter((value) => value !== undefined);
}

function fixedNodes({ on, forEach, node, work }: StageSource): readonly SourceNode[] {
  const keys = ["batch", "concurrency", "maxFailures", "maxUnavailable", "timeout"];
  const names = work.kind === "apply" ? work.states.map(({ each }) => each) : [];
  return defined(on, forEach, ...names, ...keys.map((key) => node.get(key)));
}

function unknownStage(
  who: string,
  { at }: SourceNode,
  { name, known, isLater }: { readonly name: string; readonly known: readonly string[]; readonly isLater: boolean },
): Problem {
  const message = isLater
    ? `${who} rests on “stages.${name}”, which comes later`
    : `${who} rests on “stages.${name}”, which there is not`;
  const hint = isLater
    ? "only earlier stages have given something"
    : suggestHint(name, known, known.length === 0 ? "no stage comes before it" : `earlier ones: ${known.join(", ")}`);
  return { code: "STAGE_INVALID", message, at, hint };
}

function tooEarly(name: string, { at }: SourceNode): Problem {
  return {
    code: "STAGE_INVALID",
    message: `this must be known before the run starts, it cannot rest on “stages.${name}”`,
    at,
    hint: "use params, node, nodes or vars; “when” may rest on what stages gave",
  };
}
