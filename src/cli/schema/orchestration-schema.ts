import type { Action } from "#engine/orchestrate/action.ts";
import { paceKeys } from "#engine/orchestrate/bind-stage.ts";
import { IncludeShape } from "#engine/orchestrate/inclusion.ts";
import { OrchestrationShape, WaveShape } from "#engine/orchestrate/load-orchestration.ts";
import { ApplyShape, RunShape } from "#engine/orchestrate/stage-shape.ts";
import { Duration } from "#engine/step/fields.ts";
import { either, schemaOf, type JsonSchema } from "../modules/json-schema.ts";
import { expressionDefinition, paramsSchema, withExpressions } from "./state-schema.ts";

type SchemaProperties = Readonly<Record<string, JsonSchema>>;

const stageList: JsonSchema = { type: "array", items: { $ref: "#/definitions/stage" } };

/** The schema of files below `orchestrate/`, with every action and its arguments. */
export function orchestrationSchema(actions: readonly Action[]): JsonSchema & { readonly definitions: object } {
  const top = schemaOf(OrchestrationShape);
  const { properties = {} } = top;
  const both = either({ required: ["include"] }, includeSchema(), { $ref: "#/definitions/stage" });
  return {
    ...top,
    properties: {
      ...properties,
      params: paramsSchema,
      waves: {
        ...properties["waves"],
        items: { ...schemaOf(WaveShape), properties: withPace(propertiesOf(WaveShape)) },
      },
      stages: { ...properties["stages"], items: { type: "object", ...both } },
    },
    definitions: {
      expression: expressionDefinition,
      stage: {
        type: "object",
        ...either(
          { required: ["apply"] },
          { ...schemaOf(ApplyShape), properties: stageKeys(ApplyShape) },
          runSchema(actions),
        ),
      },
    },
  };
}

function propertiesOf(shape: Parameters<typeof schemaOf>[0]): SchemaProperties {
  return schemaOf(shape).properties ?? {};
}

function includeSchema(): JsonSchema {
  const { when = {}, ...others } = propertiesOf(IncludeShape);
  return { ...schemaOf(IncludeShape), properties: { ...others, when: { ...when, type: ["boolean", "string"] } } };
}

/** The keys of a stage with the types of their values. The reader of files takes text for these, as it may hold expressions. */
function stageKeys(shape: typeof ApplyShape | typeof RunShape): SchemaProperties {
  const { when = {}, timeout = {}, onFailure = {}, ...others } = propertiesOf(shape);
  return withPace({
    ...others,
    when: { ...when, type: ["boolean", "string"] },
    timeout: withExpressions({ ...schemaOf(Duration), ...timeout }),
    onFailure: { ...onFailure, ...stageList },
  });
}

function withPace(properties: SchemaProperties): SchemaProperties {
  const paces = Object.entries(paceKeys).map(([key, schema]) => [
    key,
    withExpressions({ ...schemaOf(schema), ...properties[key] }),
  ]);
  return { ...properties, ...(Object.fromEntries(paces) as SchemaProperties) };
}

/** Each action has a whole schema, or an argument of one action would pass as an argument of another. */
function runSchema(actions: readonly Action[]): JsonSchema {
  const names = actions.map(({ name }) => name);
  const { run = {}, ...keys } = stageKeys(RunShape);
  return {
    required: ["id", "run"],
    properties: { id: keys["id"] ?? {}, run: { description: run.description ?? "", enum: names } },
    allOf: actions.map(({ name, summary, args }) => {
      const { properties = {}, ...schema } = schemaOf(args);
      const own = Object.fromEntries(Object.entries(properties).map(([key, value]) => [key, withExpressions(value)]));
      const required = schema.required ?? [];
      const inside = { ...schema, properties: own, description: keys["with"]?.description ?? "" };
      const whole: JsonSchema = {
        properties: { ...own, ...keys, run: { description: summary } },
        additionalProperties: schema.additionalProperties ?? true,
        ...either({ required: ["with"] }, { properties: { with: inside } }, { required }),
      };
      return either({ properties: { run: { const: name } }, required: ["run"] }, whole);
    }),
  };
}
