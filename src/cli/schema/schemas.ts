import { actionNames, findAction } from "#actions/registry.ts";
import { knownModules } from "../modules/known-modules.ts";
import { projectIfAny } from "../project/find-project.ts";
import type { JsonSchema } from "./json-schema.ts";
import { manifestSchema } from "./manifest-schema.ts";
import { orchestrationSchema } from "./orchestration-schema.ts";
import { rosterSchema } from "./roster-schema.ts";
import { stateSchema } from "./state-schema.ts";

const makers = {
  state: async () => stateSchema(await knownModules(projectIfAny(undefined)).all()),
  roster: () => Promise.resolve(rosterSchema()),
  orchestration: async () => {
    const actions = await Promise.all(actionNames.map(findAction));
    return orchestrationSchema(actions.filter((action) => action !== undefined));
  },
  manifest: () => Promise.resolve(manifestSchema()),
};

/** A kind of file that the operator writes. */
export type SchemaKind = keyof typeof makers;
export const schemaKinds = Object.keys(makers) as SchemaKind[];

/** The schema of files of this kind, for editors and validators: JSON Schema, draft-07. */
export async function jsonSchemaOf(kind: SchemaKind): Promise<JsonSchema> {
  const schema = await makers[kind]();
  return { $schema: "http://json-schema.org/draft-07/schema#", title: `kcore ${kind}`, ...schema } as JsonSchema;
}
