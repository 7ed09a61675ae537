import { inAnyCase } from "../manifests/spellings.ts";
import { manifestSchemas } from "../manifests/manifest-schemas.ts";
import { either, mapInner, schemaOf, type JsonSchema } from "./json-schema.ts";

/**
 * Documents for `kcore apply -f`: the fields of each kind, with keys in camelCase, which is proposed, or in snake_case.
 */
export function manifestSchema(): JsonSchema {
  const kinds = Object.entries(manifestSchemas);
  return {
    type: "object",
    properties: {
      kind: {
        description: "What it is.",
        anyOf: [{ enum: kinds.map(([kind]) => kind) }, ...kinds.map(([kind]) => spellings(kind))],
      },
    },
    required: ["kind"],
    allOf: kinds.map(([kind, schema]) =>
      either({ properties: { kind: spellings(kind) }, required: ["kind"] }, withSnakeKeys(schemaOf(schema))),
    ),
  };
}

function spellings(kind: string): JsonSchema {
  return { type: "string", pattern: inAnyCase(kind) };
}

function withSnakeKeys(schema: JsonSchema): JsonSchema {
  const inner = mapInner(schema, withSnakeKeys);
  const { properties, required = [] } = inner;
  if (!properties) return inner;
  const camel = Object.keys(properties).filter((name) => snakeCase(name) !== name);
  const both = required.filter((name) => camel.includes(name));
  return {
    ...inner,
    // As patterns, so that an editor proposes each key once.
    ...(camel.length > 0 && {
      patternProperties: Object.fromEntries(camel.map((name) => [`^${snakeCase(name)}$`, properties[name] ?? {}])),
    }),
    required: required.filter((name) => !both.includes(name)),
    ...(both.length > 0 && {
      allOf: both.map((name) => ({ anyOf: [{ required: [name] }, { required: [snakeCase(name)] }] })),
    }),
  };
}

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
