import type { z } from "zod";
import { JumpSchema, NodeSchema, SharedSchema } from "#engine/roster/entry-schema.ts";
import { schemaOf, type JsonSchema } from "./json-schema.ts";

/** Files of `roster/`; nothing in them is an expression. */
export function rosterSchema(): JsonSchema & { readonly definitions: object } {
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
        description: "What all nodes of the file have, unless they say otherwise.",
      },
      groups: byName("group", "What nodes have that name it in their groups."),
      nodes: byName("node", "The machines, by name."),
      jumps: byName("jump", "Hosts that are only jumped over."),
    },
    additionalProperties: false,
    definitions: { group: orNothing(SharedSchema), node: orNothing(NodeSchema), jump: schemaOf(JumpSchema) },
  };
}
