import { either, mapInner, type JsonSchema } from "./json-schema.ts";

/** A text with an expression, which stands for a value of any type. */
export const expressionDefinition: JsonSchema = { type: "string", pattern: "\\{\\{[\\s\\S]*\\}\\}" };
const isExpression: JsonSchema = { $ref: "#/definitions/expression" };

/**
 * The schema, at every depth also with `{{…}}` in the place of a value. It uses `if` instead of `anyOf`, so that an
 * editor shows only the mistakes of a value that is no expression.
 */
export function withExpressions(schema: JsonSchema): JsonSchema {
  // The branches of a union are kinds of one value, in whose place the expression stands.
  const { anyOf, oneOf, ...rest } = schema;
  const branches = (list: readonly JsonSchema[]) => list.map((branch) => mapInner(branch, withExpressions));
  const inner: JsonSchema = {
    ...mapInner(rest, withExpressions),
    ...(anyOf && { anyOf: branches(anyOf) }),
    ...(oneOf && { oneOf: branches(oneOf) }),
  };
  if (takesAnyText(inner)) return inner;
  const { description, default: preset, examples, ...rules } = inner;
  const types = typesOf(rules);
  return {
    ...(description !== undefined && { description }),
    ...(preset !== undefined && { default: preset }),
    ...(examples && { examples }),
    // Repeated here, where an editor looks that completes a key.
    ...(types && { type: [...new Set([...types, "string"])] }),
    ...either(isExpression, {}, rules),
  };
}

function takesAnyText(schema: JsonSchema): boolean {
  const { type, enum: values, pattern, format, minLength = 0, allOf, anyOf } = schema;
  const isFree = [values, pattern, format, allOf, schema.const].every((rule) => rule === undefined) && minLength < 5;
  if (anyOf) return isFree && type === undefined && anyOf.some(takesAnyText);
  return (
    isFree && (type === "string" || Object.keys(schema).every((key) => key === "description" || key === "default"))
  );
}

/** The types of the values that fit, if all of them are known. */
function typesOf({ type, anyOf, enum: values, const: only }: JsonSchema): readonly string[] | undefined {
  if (type !== undefined) return [type].flat();
  const some = values ?? (only === undefined ? undefined : [only]);
  if (some?.every((value) => typeof value === "string")) return ["string"];
  const inner = anyOf?.map(typesOf);
  return inner?.every((types) => types !== undefined) ? inner.flat() : undefined;
}
