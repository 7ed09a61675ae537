import type { SourceNode } from "#engine/yaml/node.ts";
import type { Call, Expression } from "./ast.ts";
import { mayHoldExpression, templateOfScalar, wholeExpression } from "./expression.ts";
import { Fault } from "./fault.ts";
import { printed } from "./helper.ts";
import { Interpreter } from "./interpret.ts";
import type { Scope } from "./scope.ts";

/** In a scope: what nodes told besides facts and steps, `params.x` and `stages.x`; no expression can name it. */
const told = Symbol("told");
type ToldScope = Scope & { readonly [told]?: ReadonlySet<string> };

/** The scope with what nodes told in it. */
export function withTold(scope: Scope, paths: Iterable<string>): Scope {
  const seen: ToldScope = { ...scope, [told]: new Set(paths) };
  return seen;
}

/** Whether the value is what a node told, as it is. */
export function isToldValue(value: SourceNode, scope: Scope): boolean {
  if (value.kind !== "scalar" || typeof value.value !== "string" || !mayHoldExpression(value.value)) return false;
  const whole = wholeExpression(templateOfScalar(value));
  return whole !== undefined && isTold(whole, scope);
}

/**
 * Refuses a file's name of the bastion that a node told (S2): a fact or a step's output may be a part of it that leads nowhere else,
 * as in `files/{{facts.os.id}}.conf`, and the key of a lookup. @throws KcoreError EXPRESSION_TYPE
 */
export function refuseToldName(name: SourceNode | undefined, scope: Scope): void {
  if (name?.kind !== "scalar" || typeof name.value !== "string" || !mayHoldExpression(name.value)) return;
  const template = templateOfScalar(name);
  const isWhole = wholeExpression(template) !== undefined;
  const value = (given: unknown, call: Call): void => {
    if (!isTold(call, scope) || (!isWhole && /^\w[\w.+-]*$/.test(printed(given) ?? ""))) return;
    throw new Fault("a node told what names a file of the bastion here", {
      hint: "choose by it: {{lookup params.files facts.os.id}}, or {{#if (eq facts.os.id 'debian')}}…{{/if}}",
    });
  };
  new Interpreter(template).into({ text: () => undefined, value }, scope);
}

function isTold({ path, params }: Call, scope: Scope): boolean {
  if (params.length === 0) return tells(path, scope);
  const isLookup = path.type === "PathExpression" && path.original === "lookup";
  return (isLookup ? params.slice(0, 1) : params).some((one) => tells(one, scope));
}

function tells(expression: Expression, scope: Scope): boolean {
  if (expression.type === "SubExpression") return isTold(expression, scope);
  if (expression.type !== "PathExpression") return false;
  const [root = "", name = ""] = expression.parts;
  const more = (scope as ToldScope)[told];
  return root === "facts" || root === "steps" || more?.has(`${root}.${name}`) === true;
}
