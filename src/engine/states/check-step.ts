import type { Problem } from "#errors/problem.ts";
import { evaluate, evaluateBoolean } from "#engine/expressions/evaluate.ts";
import type { Scope } from "#engine/expressions/scope.ts";
import type { Templates } from "#engine/expressions/template.ts";
import { attemptKnown, Attempts, Unknown } from "#engine/expressions/unknown.ts";
import type { ModuleDefinition } from "#engine/step/define.ts";
import { nodeAt, type SourceNode, type SourceScalar } from "#engine/yaml/node.ts";
import { knownArgProblems } from "./early-args.ts";
import type { NodeScope } from "./node-scope.ts";
import { readCommonKeys } from "./step-keys.ts";
import type { ModuleStepSource } from "./step-source.ts";

/** A `when` and its scope: for a `when` of an include, the scope around the include. */
export interface Condition {
  readonly node: SourceNode;
  readonly scope: NodeScope;
}

export interface CheckedParts {
  readonly source: ModuleStepSource;
  /** Absent for an unknown module. */
  readonly module?: ModuleDefinition;
  readonly scope: NodeScope;
  readonly conditions: readonly Condition[];
  readonly templates: Templates;
}

/**
 * Finds all faults of a step before the run, even beside other faults and unknown values. If a
 * condition leaves the step out, the rest is not checked.
 */
export function checkStep({ source, module, scope, conditions, templates }: CheckedParts): readonly Problem[] {
  const attempts = new Attempts();
  const { problems } = attempts;
  const registers = scope.registeredSteps();
  const own = scope.beforeSteps(registers);
  const truths = conditions.map(({ node, scope: place }) =>
    attempts.run(() => evaluateBoolean(node, place.beforeSteps(registers))),
  );
  if (truths.includes(false)) return problems.list;
  attempts.run(() => readCommonKeys(source.node, own));
  if (module === undefined) attempts.run(() => evaluate(source.args, own));
  else problems.add(...knownArgProblems(module, source.args, own));
  const name = writtenTemplate(source);
  if (name !== undefined) attempts.run(() => templates.render(name.value, { ...own, ...varsOf(source, own) }, name.at));
  return problems.list;
}

/** Names that a step gives its template; a value with a fault is Unknown, since the check of the arguments reports the fault. */
function varsOf({ args }: ModuleStepSource, scope: Scope): Readonly<Record<string, unknown>> {
  const vars = nodeAt(args, ["vars"]);
  if (vars?.kind !== "map") return {};
  const valueOf = (node: SourceNode): unknown => {
    const value = attemptKnown(() => evaluate(node, scope));
    return value === undefined ? new Unknown("vars") : value;
  };
  return Object.fromEntries([...vars.entries.values()].map(({ key, value }) => [key, valueOf(value)]));
}

/** The template that a step names in `template:`, if the name is no expression. */
export function writtenTemplate({ args }: ModuleStepSource): (SourceScalar & { readonly value: string }) | undefined {
  const name = nodeAt(args, ["template"]);
  const isWritten = name?.kind === "scalar" && typeof name.value === "string" && !name.value.includes("{{");
  return isWritten ? (name as SourceScalar & { readonly value: string }) : undefined;
}
