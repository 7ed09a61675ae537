import { coerceLate, type GivenParam } from "#engine/params/bind-params.ts";
import type { ParamDeclarations } from "#engine/params/declare-params.ts";
import type { Scope } from "#engine/expressions/scope.ts";
import { Unknown } from "#engine/expressions/unknown.ts";
import { isUntrustedValue } from "#engine/expressions/untrusted-names.ts";
import type { LateParams, NodeScope, UntrustedPaths } from "./node-scope.ts";
import type { LateScope } from "./planned-step.ts";

/**
 * Gives Unknown parameters their values during the run: evaluates each expression in the scope in which it
 * was given. Undefined if all parameters are known.
 */
export function lateParams(
  declared: ParamDeclarations,
  given: ReadonlyMap<string, GivenParam>,
  params: Readonly<Record<string, unknown>>,
  outer: NodeScope,
): LateParams | undefined {
  const waiting = [...declared.values()].flatMap((declaration) => {
    const value = given.get(declaration.name);
    const isLate = params[declaration.name] instanceof Unknown && value !== undefined && "node" in value;
    return isLate ? [{ declaration, node: value.node }] : [];
  });
  if (waiting.length === 0) return undefined;
  const registers = outer.registeredSteps();
  return (late) => {
    const scope = outer.withLate(late, registers);
    return Object.fromEntries(
      waiting.map(({ declaration, node }) => [declaration.name, coerceLate(declaration, node, scope)]),
    );
  };
}

/** The parameters that depend on nodes' answers. */
export function untrustedParams(
  given: ReadonlyMap<string, GivenParam>,
  params: Readonly<Record<string, unknown>>,
  outer: NodeScope,
): UntrustedPaths {
  const registers = outer.registeredSteps();
  const found = [...given].flatMap(([name, value]) => {
    if (!("node" in value) || !isUntrustedValue(value.node, value.scope ?? {})) return [];
    const isLate = params[name] instanceof Unknown;
    const scope = (late: LateScope | undefined): Scope =>
      late && isLate ? outer.withLate(late, registers) : (value.scope ?? {});
    return [[`params.${name}`, { node: value.node, scope }] as const];
  });
  return new Map(found);
}
