import { Declaration } from "#engine/params/declare-params.ts";
import { ValueKeys } from "#engine/states/step-keys.ts";
import { WrittenKeys } from "#engine/states/step-source.ts";
import type { ModuleDefinition } from "#engine/step/define.ts";
import { either, mapInner, schemaOf, type JsonSchema } from "../modules/json-schema.ts";

/** The schema of a file's `params`. */
export const paramsSchema: JsonSchema = {
  type: ["object", "null"],
  description: "The parameters that the file declares, by name.",
  propertyNames: { pattern: "^[A-Za-z_][A-Za-z0-9_]*$" },
  additionalProperties: schemaOf(Declaration),
};

const conditionSchema: JsonSchema = {
  type: ["boolean", "string"],
  description: "True or false; false leaves the step out.",
};
const each: JsonSchema = {
  type: ["array", "object", "string"],
  description: "A list or a map known before the run; the step is repeated for each entry, as item.",
};
/** The keys of a step that hold no expression. */
const expressionlessKeys = schemaOf(WrittenKeys).properties ?? {};
const common = { when: conditionSchema, each };

/** The schema of files below `states/`, with every module and its arguments. */
export function stateSchema(modules: readonly ModuleDefinition[]): JsonSchema & { readonly definitions: object } {
  return {
    type: "object",
    properties: {
      description: { type: "string", description: "The thing that the state keeps in order, in one sentence." },
      params: paramsSchema,
      steps: { type: "array", description: "The steps, in this order.", items: stepSchema(modules) },
    },
    required: ["steps"],
    additionalProperties: false,
    definitions: {
      expression: expressionDefinition,
      ...Object.fromEntries(modules.map((module) => [module.name, argsSchema(module)])),
    },
  };
}

function argsSchema({ args, summary }: ModuleDefinition): JsonSchema {
  const schema = schemaOf(args);
  const { required = [], anyOf } = schema;
  // A module without required arguments may be written as `reboot.done:` alone.
  const type = required.length === 0 && anyOf === undefined ? { type: ["object", "null"] } : {};
  return withExpressions({ ...schema, ...type, description: summary });
}

function stepSchema(modules: readonly ModuleDefinition[]): JsonSchema {
  const { id = {}, require = {} } = expressionlessKeys;
  const includeStep: JsonSchema = {
    type: "object",
    properties: {
      include: {
        type: "string",
        pattern: "^[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*$",
        description: "Another state, whose steps stand in this place.",
      },
      with: { type: ["object", "null"], description: "The parameters of the included state." },
      id,
      require,
      ...common,
    },
    additionalProperties: false,
  };
  const moduleStep: JsonSchema = {
    type: "object",
    properties: {
      ...expressionlessKeys,
      ...common,
      ...withExpressions(schemaOf(ValueKeys)).else?.properties,
      ...Object.fromEntries(modules.map(({ name }) => [name, { $ref: `#/definitions/${name}` }])),
    },
    required: ["id"],
    additionalProperties: false,
    oneOf: modules.map(({ name }) => ({ required: [name] })),
  };
  return { type: "object", ...either({ required: ["include"] }, includeStep, moduleStep) };
}

/** The schema of a text with an expression, which stands for a value of any type. */
export const expressionDefinition: JsonSchema = { type: "string", pattern: "\\{\\{[\\s\\S]*\\}\\}" };
const expressionRef: JsonSchema = { $ref: "#/definitions/expression" };

/**
 * The schema, at every depth also with `{{…}}` in the place of a value. It uses `if` instead of `anyOf`, so that an
 * editor shows only the mistakes of a value that is no expression.
 */
export function withExpressions(schema: JsonSchema): JsonSchema {
  // An expression replaces the whole value of a union, so it is no alternative inside each branch.
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
    // Editors read the type here to complete a key, not under `else`.
    ...(types && { type: [...new Set([...types, "string"])] }),
    ...either(expressionRef, {}, rules),
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
