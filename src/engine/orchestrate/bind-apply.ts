import { KcoreError, type Problem } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import { evaluate } from "#engine/expressions/evaluate.ts";
import { secretOf } from "#engine/params/bind-params.ts";
import { referencesOf } from "#engine/expressions/references.ts";
import type { Scope } from "#engine/expressions/scope.ts";
import { UnknownValue } from "#engine/expressions/unknown.ts";
import { whileOpening } from "#engine/step/sealed.ts";
import type { SourceNode } from "#engine/yaml/node.ts";
import type { Problems } from "#engine/yaml/problems.ts";
import { validateValue } from "#engine/yaml/validate.ts";
import { z } from "zod";
import type { BindContext, StatesUse } from "./bind-context.ts";
import type { StageScope, StageTask } from "./plan.ts";
import type { AppliedState, ApplySource } from "./stage-source.ts";

type Given = StatesUse["apply"][number]["given"];
type Names = ReadonlySet<string>;

/** What applies states: those that are written out, and those whose names are expressions, which each node has of its own. */
export function bindApply(
  { states, with: given }: ApplySource,
  id: string,
  context: BindContext,
  see: (late: StageScope) => Scope,
): StageTask | undefined {
  const { catalogue, problems } = context;
  const declared = new Map(
    states
      .filter(({ each }) => each === undefined)
      .map(({ name, at }) => [name, problems.attempt((): Names => new Set(catalogue.stateParams(name, at)))]),
  );
  if ([...declared.values()].includes(undefined)) return undefined;
  const isOpen = states.some(({ each }) => each !== undefined);
  if (!isOpen)
    refuseStray(states, given, new Set([...declared.values()].flatMap((names) => [...(names ?? [])])), problems);
  const taken = (late: StageScope) =>
    states.map((state) => {
      const name = nameFor(state, see(late));
      return { state: name, at: state.at, takes: declared.get(name) ?? paramsOf(name, state, late, context) };
    });
  const task = applyTask(id, context, (late) =>
    taken(late).map(({ state, at, takes }) => ({ state, at, given: givenIn(given, takes, see(late)) })),
  );
  if (!isOpen || task.kind !== "apply") return task;
  return { ...task, rests: (late) => restsOf(given, taken(late)) };
}

function nameFor({ name, each }: AppliedState, scope: Scope): string {
  return each === undefined ? name : validateValue(evaluate(each, scope), each, z.string().min(1));
}

/** @throws KcoreError STATE_NOT_FOUND where the node stands in the roster: what it says made the name */
function paramsOf(name: string, { at }: AppliedState, { node }: StageScope, { catalogue, roster }: BindContext): Names {
  try {
    return new Set(catalogue.stateParams(name, at));
  } catch (error) {
    if (!(error instanceof KcoreError) || node === undefined) throw error;
    const place = roster.positions.get(node.name);
    const tell = (problem: Problem): Problem =>
      problem.code === "STATE_NOT_FOUND" && problem.message === `no state “${name}”`
        ? { ...problem, message: `there is no state “${name}”, which ${node.name} asks for`, at: place ?? at }
        : problem;
    throw new KcoreError(error.problems.map(tell), { cause: error });
  }
}

/** What they take of `with` rests on these. */
function restsOf(given: SourceNode | undefined, states: readonly { readonly takes: Names }[]): Names {
  if (given?.kind !== "map") return new Set(given && referencesOf(given).stages);
  const taken = [...given.entries.values()].filter(({ key }) => states.some(({ takes }) => takes.has(key)));
  return new Set(taken.flatMap(({ value }) => [...referencesOf(value).stages]));
}

/** What `with` gives of what a state takes; a value that no stage gave yet is given as the Unknown it is. */
function givenIn(map: SourceNode | undefined, takes: Names, scope: Scope): Given {
  const given: Given = new Map();
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

/** One expression for all of `with`: the state itself refuses a name that it does not declare. */
function givenWhole(node: SourceNode, scope: Scope): Given {
  const values = validateValue(evaluate(node, scope), node, z.record(z.string(), z.unknown()));
  return new Map(Object.entries(values).map(([key, value]) => [key, { value, at: node.at }]));
}

/** A task that applies states; which and with what is told for each node. */
export function applyTask(
  id: string,
  { catalogue, usedNames }: Pick<BindContext, "catalogue" | "usedNames">,
  apply: (late: StageScope) => StatesUse["apply"],
): StageTask {
  const plain = new Map<string, string>();
  return {
    kind: "apply",
    plain,
    draft: (late) =>
      usedNames.draft(id, late.node as NodeEntry, async ({ taken, registered }) => {
        const states = await whileOpening(secretOf(catalogue.readSecret), () => apply(late));
        if (states.every(({ given }) => given.size === 0))
          plain.set((late.node as NodeEntry).name, states.map(({ state }) => state).join(" "));
        return catalogue.draft({ apply: states, node: late.node as NodeEntry, taken, registered });
      }),
  };
}

/** Each of the states takes from `with` what it declares; a name that none of them declares is a mistake. */
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
