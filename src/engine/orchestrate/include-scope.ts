import type { SourcePosition } from "#errors/problem.ts";
import { bindParams, givenFromNode } from "#engine/params/bind-params.ts";
import type { Scope } from "#engine/expressions/scope.ts";
import type { BindContext } from "./bind-context.ts";
import type { Inclusion } from "./inclusion.ts";
import { resolveTargets } from "./given-params.ts";

/**
 * The context of stages inside these includes, the outermost first.
 * @throws KcoreError with every problem of the arguments; TARGET_EMPTY
 */
export async function contextWithin(within: readonly Inclusion[], context: BindContext): Promise<BindContext> {
  let inner = context;
  for (const inclusion of within) inner = await enter(inclusion, inner);
  return inner;
}

async function enter(
  { include, params, at, with: given, when }: Inclusion,
  context: BindContext,
): Promise<BindContext> {
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
