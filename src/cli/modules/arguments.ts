import type { Plain } from "#engine/roster/flow-yaml.ts";
import type { Action } from "#engine/orchestrate/action.ts";
import type { ModuleDefinition } from "#engine/step/define.ts";
import { schemaOf, type JsonSchema } from "./json-schema.ts";

/** An argument of a module or action, or a field of a map among its arguments. */
export interface Argument {
  readonly name: string;
  readonly type: string;
  readonly required: boolean;
  readonly default?: unknown;
  readonly description: string;
  /** The fields of the map, or of each map in the list. */
  readonly arguments?: readonly Argument[];
  /** Examples of the map. */
  readonly examples?: readonly Plain[];
}

/** The arguments of a module or an action, at every depth, from its schema. */
export function listArguments({ args }: Pick<ModuleDefinition | Action, "args">): readonly Argument[] {
  return fieldsOf(mapsIn(schemaOf(args)));
}

/** The fields of several kinds of maps together; a field is required if every kind requires it. */
function fieldsOf(maps: readonly JsonSchema[]): readonly Argument[] {
  const found = new Map<string, Argument>();
  for (const { properties = {} } of maps)
    for (const [name, property] of Object.entries(properties))
      found.set(name, {
        name,
        type: typeOf(property),
        required: maps.every(({ required = [] }) => required.includes(name)),
        ...(property.default === undefined ? {} : { default: property.default }),
        description: property.description ?? "",
        ...fieldsAndExamples(property),
      });
  return [...found.values()];
}

function fieldsAndExamples(property: JsonSchema): Pick<Argument, "arguments" | "examples"> {
  const maps = mapsIn(property);
  const fields = fieldsOf(maps);
  if (fields.length === 0) return {};
  const examples = maps.flatMap((map) => map.examples ?? []);
  return { arguments: fields, examples: [...new Map(examples.map((one) => [JSON.stringify(one), one])).values()] };
}

/** The schemas of the maps that a value may be or hold: as a branch of a union, as an item, or under a free key. */
function mapsIn(schema: JsonSchema): readonly JsonSchema[] {
  const { properties, anyOf = [], oneOf = [], items, additionalProperties, examples } = schema;
  if (properties) return [schema];
  const inner = [...anyOf, ...oneOf, ...(items ? [items] : [])];
  if (typeof additionalProperties === "object") inner.push(additionalProperties);
  const maps = inner.flatMap(mapsIn);
  // A union's examples belong to its maps.
  return maps.map((map) => (map.examples || items || !examples ? map : { ...map, examples }));
}

function typeOf({ type, enum: values, const: only, anyOf, items }: JsonSchema): string {
  if (only !== undefined) return JSON.stringify(only);
  if (values) return values.map((value) => JSON.stringify(value)).join(" | ");
  if (anyOf) return [...new Set(anyOf.map(typeOf))].join(" | ");
  if (type === "array") return items ? listOf(typeOf(items)) : "list";
  if (type === "object") return "map";
  return typeof type === "string" ? type : (type?.join(" | ") ?? "any");
}

function listOf(type: string): string {
  return type === "map" ? "list of maps" : `list of ${type}`;
}
