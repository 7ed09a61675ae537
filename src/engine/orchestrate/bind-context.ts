import type { SourcePosition } from "#errors/problem.ts";
import type { Roster } from "#engine/roster/roster.ts";
import { bindParams, givenFromNode, type SecretReader } from "#engine/params/bind-params.ts";
import type { ParamDeclarations } from "#engine/params/declare-params.ts";
import type { SourceNode } from "#engine/yaml/node.ts";
import type { Problems } from "#engine/yaml/problems.ts";
import type { Scope } from "#engine/expressions/scope.ts";
import type { ExpandOptions } from "#engine/states/expand-steps.ts";
import type { UnresolvedStep } from "#engine/states/planned-step.ts";
import type { Action } from "./action.ts";
import { resolveTargets } from "./given-params.ts";
import type { Inclusion } from "./inclusion.ts";
import type { NodeLimit } from "./node-limit.ts";
import type { UsedNames } from "./used-names.ts";

/** The states and actions that stages may name. */
export interface Catalogue {
  /** @throws KcoreError STATE_NOT_FOUND, and with every problem of the state's file */
  stateParams(name: string, at?: SourcePosition): ParamDeclarations;
  /** The steps of some states for one node. @throws KcoreError with every problem */
  expand(
    use: Required<Pick<ExpandOptions, "apply" | "node" | "usedIds" | "registered">>,
  ): Promise<readonly UnresolvedStep[]>;
  action(name: string): Promise<Action | undefined>;
  readonly actionNames: readonly string[];
  /** Reads each secret once a run. */
  readonly readSecret: SecretReader;
}

/** The inputs of binding that are the same for all stages of a run, a wave or an include. */
export interface BindContext {
  readonly roster: Roster;
  /** `params`, `nodes` and `run`. */
  readonly scope: Scope;
  /** The `when` of each include around the stage. */
  readonly conditions: readonly { readonly node: SourceNode; readonly scope: Scope }[];
  readonly catalogue: Catalogue;
  readonly skipHealth: boolean;
  /** The operator's batch, which replaces that of every stage. */
  readonly batch?: number | string | undefined;
  readonly limit?: NodeLimit | undefined;
  readonly problems: Problems;
  readonly usedNames: UsedNames;
}

/**
 * The context of stages inside these includes, the outermost first.
 * @throws KcoreError with every problem of the arguments; TARGET_EMPTY
 */
export async function contextWithin(within: readonly Inclusion[], context: BindContext): Promise<BindContext> {
  let inner = context;
  for (const inclusion of within) inner = await contextIn(inclusion, inner);
  return inner;
}

async function contextIn(inclusion: Inclusion, context: BindContext): Promise<BindContext> {
  const { include, params, at, with: given, when } = inclusion;
  const { scope, roster, catalogue } = context;
  const fixed: Scope = { nodes: scope["nodes"], run: scope["run"] };
  const bound = await bindParams(params, givenFromNode(given, scope), {
    owner: `the orchestration “${include}”`,
    at: given?.at ?? at,
    scope: fixed,
    readSecret: catalogue.readSecret,
  });
  const placeOf = (name: string): SourcePosition | undefined =>
    given?.kind === "map" ? given.get(name)?.at : undefined;
  return {
    ...context,
    scope: { ...fixed, params: resolveTargets(params, bound, roster, placeOf) },
    conditions: [...context.conditions, ...(when ? [{ node: when, scope }] : [])],
  };
}
