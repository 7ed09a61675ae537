import { Attempts } from "./unknown.ts";
import { KcoreError } from "#errors/problem.ts";
import { isEncrypted, encryptedValue } from "#engine/step/encrypted-value.ts";
import { Secret } from "#engine/step/secret.ts";
import { mayHoldExpression, templateOfScalar, wholeExpression } from "./expression.ts";
import { Interpreter } from "./interpret.ts";
import { describeValue, type SourceMap, type SourceNode, type SourceScalar } from "#engine/yaml/node.ts";
import type { Scope } from "./scope.ts";

/**
 * The value of a tree, its expressions evaluated. A scalar that is one whole expression keeps that value's type;
 * any other text with expressions gives a text, which is a Secret if a secret went into it. Values that expressions
 * bring are data: expressions in them are never evaluated (S-4).
 * @throws KcoreError with every problem at its place in the file; UnknownValue if the value depends on an Unknown; UnopenedValue.
 */
export function evaluate(node: SourceNode, scope: Scope): unknown {
  const attempts = new Attempts();
  const value = evaluateInto(node, scope, attempts);
  attempts.end();
  return value;
}

function evaluateInto(node: SourceNode, scope: Scope, attempts: Attempts): unknown {
  switch (node.kind) {
    case "scalar":
      return attempts.run(() => evaluateScalar(node, scope));
    case "list":
      return node.items.map((item) => evaluateInto(item, scope, attempts));
    case "map":
      return evaluateMap(node, scope, attempts);
  }
}

function evaluateMap(node: SourceMap, scope: Scope, attempts: Attempts): Record<string, unknown> {
  const plain = Object.create(null) as Record<string, unknown>;
  for (const { key, value } of node.entries.values()) plain[key] = evaluateInto(value, scope, attempts);
  return plain;
}

/** The value of one scalar; see {@link evaluate}. */
export function evaluateScalar(scalar: SourceScalar, scope: Scope): unknown {
  if (isEncrypted(scalar.value)) return encryptedValue(scalar.value, scalar.at);
  if (typeof scalar.value !== "string" || !mayHoldExpression(scalar.value)) return scalar.value;
  const template = templateOfScalar(scalar);
  const whole = wholeExpression(template);
  const interpreter = new Interpreter(template);
  return whole === undefined ? interpreter.text(scope) : interpreter.value(whole, scope);
}

/** The value of a condition (`when`). @throws KcoreError EXPRESSION_TYPE unless the value is true or false; as {@link evaluate}. */
export function evaluateBoolean(node: SourceNode, scope: Scope): boolean {
  const value = evaluate(node, scope);
  if (typeof value === "boolean") return value;
  throw new KcoreError({
    code: "EXPRESSION_TYPE",
    message: `the condition must be true or false, not ${describeValue(value)}`,
    at: node.at,
    hint: conditionHint(value),
  });
}

function conditionHint(value: unknown): string {
  if (typeof value === "string" || value instanceof Secret)
    return "write one expression and nothing around it: \"{{eq node.dc 'DC1'}}\"";
  return Array.isArray(value) ? "compare it: {{gt (length x) 0}}" : "compare it: {{eq x 'y'}}, {{ne x null}}";
}

/** Whether any scalar of the tree may hold an expression. */
export function hasExpressions(node: SourceNode): boolean {
  switch (node.kind) {
    case "scalar":
      return typeof node.value === "string" && mayHoldExpression(node.value);
    case "list":
      return node.items.some(hasExpressions);
    case "map":
      return [...node.entries.values()].some(({ value }) => hasExpressions(value));
  }
}
