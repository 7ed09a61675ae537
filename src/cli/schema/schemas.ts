import type { z } from "zod";
import { actionNames, findAction } from "#actions/registry.ts";
import { JumpSchema, NodeSchema, SharedSchema } from "#engine/roster/entry-schema.ts";
import { knownModules } from "../modules/known-modules.ts";
import { projectIfAny } from "../project/find-project.ts";
import { Settings } from "../project/project-settings.ts";
import { either, mapInner, schemaOf, type JsonSchema } from "../modules/json-schema.ts";
import { orchestrationSchema } from "./orchestration-schema.ts";
import { stateSchema } from "./state-schema.ts";
import { inAnyCase } from "#manifests/spellings.ts";
import { manifestSchemas } from "#manifests/manifest-schemas.ts";

const makers = {
  state: async () => stateSchema(await knownModules(projectIfAny(undefined)).all()),
  roster: () => Promise.resolve(rosterSchema()),
  orchestration: async () => {
    const actions = await Promise.all(actionNames.map(findAction));
    return orchestrationSchema(actions.filter((action) => action !== undefined));
  },
  manifest: () => Promise.resolve(manifestSchema()),
  project: () => Promise.resolve(schemaOf(Settings)),
};

/** A kind of file that the operator writes. */
export type SchemaKind = keyof typeof makers;
export const schemaKinds = Object.keys(makers) as SchemaKind[];

/** The schema of files of this kind, for editors and validators: JSON Schema, draft-07. */
export async function jsonSchemaOf(kind: SchemaKind): Promise<JsonSchema> {
  const schema = await makers[kind]();
  return { $schema: "http://json-schema.org/draft-07/schema#", title: `kcore ${kind}`, ...schema } as JsonSchema;
}

/** The schema of files in `roster/`, in which no value is an expression. */
function rosterSchema(): JsonSchema & { readonly definitions: object } {
  const orNothing = (schema: z.ZodType): JsonSchema => ({ ...schemaOf(schema), type: ["object", "null"] });
  const byName = (name: string, description: string): JsonSchema => ({
    type: ["object", "null"],
    description,
    propertyNames: { pattern: "^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$" },
    additionalProperties: { $ref: `#/definitions/${name}` },
  });
  return {
    type: ["object", "null"],
    properties: {
      defaults: {
        ...orNothing(SharedSchema),
        description: "Defaults of all nodes of the file.",
      },
      groups: byName("group", "Values of the nodes that name the group in their groups."),
      nodes: byName("node", "The machines, by name."),
      jumps: byName("jump", "Hosts that are only jumped over."),
    },
    additionalProperties: false,
    definitions: { group: orNothing(SharedSchema), node: orNothing(NodeSchema), jump: schemaOf(JumpSchema) },
  };
}

/** The schema of documents for `kcore apply -f`. Editors propose the keys in camelCase; snake_case is valid, too. */
function manifestSchema(): JsonSchema {
  const kinds = Object.entries(manifestSchemas);
  return {
    type: "object",
    properties: {
      kind: {
        description: "The kind.",
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
