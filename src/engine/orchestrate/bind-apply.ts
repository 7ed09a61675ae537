import { KcoreError, type Problem } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import { evaluate } from "#engine/expressions/evaluate.ts";
import { type GivenParam, secretOf } from "#engine/params/bind-params.ts";
import { referencesOf } from "#engine/expressions/references.ts";
import type { Scope } from "#engine/expressions/scope.ts";
import type { StateUse } from "#engine/states/expand-steps.ts";
import { UnknownValue } from "#engine/expressions/unknown.ts";
import { whileOpening } from "#engine/step/encrypted-value.ts";
import type { SourceNode } from "#engine/yaml/node.ts";
import type { Problems } from "#engine/yaml/problems.ts";
import { validateValue } from "#engine/yaml/validate.ts";
import { z } from "zod";
import type { BindContext } from "./bind-context.ts";
import type { StageScope, StageTask } from "./plan.ts";
import type { AppliedState, ApplySource } from "./stage-source.ts";

type ParamNames = ReadonlySet<string>;

/** The task that applies a stage's states. A name that is an expression may give another state for each node. */
export function bindApply(
  { states, with: given }: ApplySource,
  id: string,
  context: BindContext,
  scopeOf: (late: StageScope) => Scope,
): StageTask | undefined {
  const { catalogue, problems } = context;
  const declared = new Map(
    states
      .filter(({ each }) => each === undefined)
      .map(({ name, at }) => [
        name,
        problems.attempt((): ParamNames => new Set(catalogue.stateParams(name, at).keys())),
      ]),
  );
  if ([...declared.values()].includes(undefined)) return undefined;
  const isOpen = states.some(({ each }) => each !== undefined);
  if (!isOpen)
    refuseStray(states, given, new Set([...declared.values()].flatMap((names) => [...(names ?? [])])), problems);
  const appliedStates = (late: StageScope) =>
    states.map((state) => {
      const name = nameFor(state, scopeOf(late));
      return { state: name, at: state.at, takes: declared.get(name) ?? paramsOf(name, state, late, context) };
    });
  const task = applyTask(id, context, (late) =>
    appliedStates(late).map(({ state, at, takes }) => ({ state, at, given: givenIn(given, takes, scopeOf(late)) })),
  );
  if (!isOpen || task.kind !== "apply") return task;
  return { ...task, dependencies: (late) => usedStages(given, appliedStates(late)) };
}

function nameFor({ name, each }: AppliedState, scope: Scope): string {
  return each === undefined ? name : validateValue(evaluate(each, scope), each, z.string().min(1));
}

/** The parameters of a state. @throws KcoreError STATE_NOT_FOUND at the node's place in the roster: the node's values made the name */
function paramsOf(name: string, { at }: AppliedState, { node }: StageScope, context: BindContext): ParamNames {
  const { catalogue, roster } = context;
  try {
    return new Set(catalogue.stateParams(name, at).keys());
  } catch (error) {
    if (!(error instanceof KcoreError) || node === undefined) throw error;
    const place = roster.positions.get(node.name);
    const located = (problem: Problem): Problem =>
      problem.code === "STATE_NOT_FOUND" && problem.message === `no state “${name}”`
        ? { ...problem, message: `there is no state “${name}”, which ${node.name} asks for`, at: place ?? at }
        : problem;
    throw new KcoreError(error.problems.map(located), { cause: error });
  }
}

/** The stages whose outputs are in the values that the states take from `with`. */
function usedStages(given: SourceNode | undefined, states: readonly { readonly takes: ParamNames }[]): Set<string> {
  if (given?.kind !== "map") return new Set(given && referencesOf(given).stages);
  const used = [...given.entries.values()].filter(({ key }) => states.some(({ takes }) => takes.has(key)));
  return new Set(used.flatMap(({ value }) => [...referencesOf(value).stages]));
}

/** The parameters of `with` that a state takes; a value that is not known yet is an Unknown. */
function givenIn(map: SourceNode | undefined, takes: ParamNames, scope: Scope): Map<string, GivenParam> {
  const given = new Map<string, GivenParam>();
  if (map && map.kind !== "map") return givenWhole(map, scope);
  for (const { key, value } of map?.entries.values() ?? []) {
    if (!takes.has(key)) continue;
    try {
      evaluate(value, scope);
      given.set(key, { node: value, scope });
    } catch (error) {
      if (!(error instanceof UnknownValue)) throw error;
      given.set(key, { value: error.unknown, at: value.at });
    }
  }
  return given;
}

/** The parameters where `with` is one expression: binding refuses a name that the state does not declare. */
function givenWhole(node: SourceNode, scope: Scope): Map<string, GivenParam> {
  const values = validateValue(evaluate(node, scope), node, z.record(z.string(), z.unknown()));
  return new Map(Object.entries(values).map(([key, value]) => [key, { value, at: node.at }]));
}

/** A task that applies states; `apply` gives the states of a node with their parameters. */
export function applyTask(
  id: string,
  { catalogue, usedNames }: Pick<BindContext, "catalogue" | "usedNames">,
  apply: (late: StageScope) => readonly StateUse[],
): StageTask {
  const plain = new Map<string, string>();
  return {
    kind: "apply",
    plain,
    expand: (late) =>
      usedNames.expand(id, late.node as NodeEntry, async ({ usedIds, registered }) => {
        const states = await whileOpening(secretOf(catalogue.readSecret), () => apply(late));
        if (states.every(({ given }) => given === undefined || given.size === 0))
          plain.set((late.node as NodeEntry).name, states.map(({ state }) => state).join(" "));
        return catalogue.expand({ apply: states, node: late.node as NodeEntry, usedIds, registered });
      }),
  };
}

/** Refuses a name in `with` that none of the stage's states declares. */
function refuseStray(
  states: ApplySource["states"],
  given: SourceNode | undefined,
  names: ReadonlySet<string>,
  problems: Problems,
): void {
  for (const { key, keyAt } of given?.kind === "map" ? given.entries.values() : []) {
    if (names.has(key)) continue;
    const all = states.map(({ name }) => `“${name}”`).join(", ");
    const hint = suggestHint(
      key,
      names,
      names.size === 0 ? "none has parameters" : `there are: ${[...names].join(", ")}`,
    );
    problems.add({
      code: "PARAM_UNKNOWN",
      message:
        states.length === 1 ? `the state ${all} has no parameter “${key}”` : `none of ${all} has a parameter “${key}”`,
      at: keyAt,
      hint,
    });
  }
}
