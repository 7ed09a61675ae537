import { z } from "zod";
import type { Plain } from "#engine/roster/flow-yaml.ts";

/**
 * The part of JSON Schema that kcore reads and makes (draft-07, which editors know best; validators of 2020-12 read it,
 * too).
 */
export interface JsonSchema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly not?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly allOf?: readonly JsonSchema[];
  readonly if?: JsonSchema;
  readonly then?: JsonSchema;
  readonly else?: JsonSchema;
  readonly items?: JsonSchema;
  readonly default?: unknown;
  readonly description?: string;
  readonly examples?: readonly Plain[];
  readonly pattern?: string;
  readonly format?: string;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly patternProperties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: JsonSchema | boolean;
  readonly propertyNames?: JsonSchema;
  readonly required?: readonly string[];
  readonly minItems?: number;
  readonly minLength?: number;
  readonly minProperties?: number;
}

/** The JSON Schema of a file's values. Rules that no JSON Schema can say (`refine`) are left to kcore. */
export function schemaOf(schema: z.ZodType): JsonSchema {
  const { $schema: _, ...made } = z.toJSONSchema(schema, {
    target: "draft-7",
    io: "input",
    unrepresentable: "any",
    override: ({ zodSchema, jsonSchema }) => {
      const { def } = zodSchema._zod;
      // A class of kcore's, such as Secret, which no file can hold.
      if (def.type === "custom") jsonSchema.not = {};
      // zod leaves out examples and defaults before a transform, as they might describe its result; kcore's describe the file's value.
      const examples = z.globalRegistry.get(zodSchema)?.["examples"] as Plain[] | undefined;
      if (examples) jsonSchema.examples = examples;
      if (def.type === "default") jsonSchema.default = def.defaultValue as Plain;
    },
  });
  return withoutImpossible(made as JsonSchema);
}

/**
 * A value that fits `test` must fit `then`, all others `otherwise`. Unlike `anyOf` it leaves no doubt which branch a
 * value was meant for.
 */
export function either(test: JsonSchema, then: JsonSchema, otherwise?: JsonSchema): JsonSchema {
  // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema, and no function
  return { if: test, then, ...(otherwise && { else: otherwise }) };
}

/** The schema without branches that no value fits; a union of one branch becomes that branch. */
function withoutImpossible(schema: JsonSchema): JsonSchema {
  return mapInner(schema, (inner) => {
    const { anyOf, ...rest } = withoutImpossible(inner);
    if (anyOf === undefined) return rest;
    const possible = anyOf.filter(({ not }) => not === undefined);
    return possible.length === 1 ? { ...possible[0], ...rest } : { ...rest, anyOf: possible };
  });
}

/** The schema with its inner schemas replaced, except those of `not`, `if`, `then`, `else` and `propertyNames`. */
export function mapInner(schema: JsonSchema, change: (inner: JsonSchema) => JsonSchema): JsonSchema {
  const { properties, patternProperties, additionalProperties, items, anyOf, oneOf, allOf } = schema;
  const all = (list: readonly JsonSchema[]) => list.map(change);
  const each = (map: Readonly<Record<string, JsonSchema>>) =>
    Object.fromEntries(Object.entries(map).map(([name, inner]) => [name, change(inner)]));
  return {
    ...schema,
    ...(properties && { properties: each(properties) }),
    ...(patternProperties && { patternProperties: each(patternProperties) }),
    ...(typeof additionalProperties === "object" && { additionalProperties: change(additionalProperties) }),
    ...(items && { items: change(items) }),
    ...(anyOf && { anyOf: all(anyOf) }),
    ...(oneOf && { oneOf: all(oneOf) }),
    ...(allOf && { allOf: all(allOf) }),
  };
}
