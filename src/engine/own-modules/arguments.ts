import { z } from "zod";
import { KcoreError } from "#errors/problem.ts";
import { Secret } from "#engine/step/secret.ts";
import { shellText } from "#engine/step/shell-text.ts";
import { withinCpuTime } from "#engine/step/within-cpu-time.ts";
import { nodeAt, plainOf, type SourceMap, type SourceNode } from "#engine/yaml/node.ts";
import { unknownKeys } from "#engine/yaml/issues.ts";
import { Problems } from "#engine/yaml/problems.ts";

/** The arguments of a module: their schema, all their names, and the names of those that are code for a shell. */
export interface OwnArguments {
  readonly schema: z.ZodType<Readonly<Record<string, unknown>>>;
  readonly names: readonly string[];
  readonly code: ReadonlySet<string>;
}

const keywords = ["type", "properties", "required", "$defs", "additionalProperties", "description"];
/** Keywords that restrict a property's type. A property with a keyword that is not in `annotations` needs one of these. */
const typeKeywords = ["type", "enum", "const", "$ref", "anyOf", "oneOf", "allOf"];
/** Limits for a property's references: the number of schemas they lead to, and the depth. */
const [mostSchemas, deepest] = [2000, 64];
const annotations = ["default", "title", "examples", "deprecated", "$comment"];

/**
 * Reads `args`: a JSON Schema (draft 2020-12) of an object, whose properties each have a description. An argument that no property names is refused;
 * `format: secret` lets a text be one of the roster's secrets, `format: shell` marks code for a shell.
 * @throws KcoreError with every problem at its place
 */
export function readArguments(node: SourceNode | undefined): OwnArguments {
  if (node === undefined) return { schema: z.strictObject({}), names: [], code: new Set() };
  if (node.kind !== "map") throw invalid("args is a JSON Schema of an object: properties, required", node);
  const problems = new Problems();
  problems.add(...unknownKeys(node, keywords, "in args"));
  const properties = node.get("properties");
  const required = plainList(node.get("required"));
  const shape: Record<string, z.ZodType> = {};
  if (properties?.kind !== "map") throw invalid("args has no properties", node);
  for (const { key, value } of properties.entries.values()) {
    const schema = problems.attempt(() => readProperty(key, value, node));
    if (schema) shape[key] = required.includes(key) || hasDefault(value) ? schema : schema.optional();
  }
  for (const name of required)
    if (!properties.entries.has(name))
      problems.add(...invalid(`required names “${name}”, which is no property`, node.get("required") ?? node).problems);
  problems.throwIfAny();
  const code = [...properties.entries.values()].filter(({ value }) => {
    const format = nodeAt(value, ["format"]);
    return format?.kind === "scalar" && format.value === "shell";
  });
  return {
    schema: limitTime(z.strictObject(shape)),
    names: Object.keys(shape),
    code: new Set(code.map(({ key }) => key)),
  };
}

/** Limits the time of a check, which patterns and references could make endless: a check beyond the limit gives a problem. */
function limitTime<Schema extends z.ZodType>(schema: Schema): Schema {
  const run = schema._zod.run.bind(schema._zod);
  schema._zod.run = (payload, context) => {
    const input: unknown = payload.value;
    const checked = withinCpuTime(() => run(payload, context));
    if (checked) return checked.value;
    const message =
      "takes too long to check, or leads back to itself: look at the patterns and references of its schema";
    return { value: input, issues: [{ code: "custom", input, path: [], message }] };
  };
  return schema;
}

/** Limits the schemas that a reader of this schema visits, references followed. @throws Error for too many, or too deep references */
function limitSchemas(schema: unknown, definitions: Readonly<Record<string, unknown>>): void {
  const known = new Map<string, number>();
  const open: string[] = [];
  const weightOf = (one: unknown): number => {
    if (typeof one !== "object" || one === null) return 0;
    const { $ref } = one as { readonly $ref?: unknown };
    const inner = Object.values(one).reduce<number>((sum, each) => sum + weightOf(each), 1);
    const weight = inner + (typeof $ref === "string" ? weightBehind($ref) : 0);
    if (weight > mostSchemas) throw new Error(`with its references followed it is more than ${mostSchemas} schemas`);
    return weight;
  };
  const weightBehind = (ref: string): number => {
    const name = ref.replace(/^#\/\$defs\//, "");
    const weight = known.get(name);
    if (weight !== undefined || open.includes(name)) return weight ?? 0;
    if (open.length >= deepest) throw new Error(`its references lead over more than ${deepest} others`);
    open.push(name);
    const found = weightOf(definitions[name]);
    open.pop();
    known.set(name, found);
    return found;
  };
  weightOf(schema);
}

function readProperty(name: string, node: SourceNode, args: SourceMap): z.ZodType {
  if (!/^[a-z][A-Za-z0-9]*$/.test(name))
    throw invalid(`“${name}” cannot be an argument's name: camelCase is wanted`, node);
  const plain = plainOf(node);
  if (typeof plain !== "object" || plain === null || Array.isArray(plain))
    throw invalid(`“${name}” is no JSON Schema`, node);
  const { description, format, ...rest } = plain as Record<string, unknown>;
  if (typeof description !== "string") throw invalid(`“${name}” has no description`, node);
  // A JSON Schema keyword such as minLength accepts every value of another type, so without a type nothing is checked.
  if (Object.keys(rest).some((key) => !annotations.includes(key)) && !typeKeywords.some((key) => key in rest))
    throw invalid(`“${name}” has no type, and without one nothing is checked`, node);
  const definitions = args.get("$defs");
  const schema = {
    ...rest,
    ...(format !== undefined && format !== "secret" && format !== "shell" ? { format } : {}),
    ...(definitions ? { $defs: plainOf(definitions) } : {}),
  };
  try {
    limitSchemas(rest, (schema.$defs ?? {}) as Readonly<Record<string, unknown>>);
    const read = z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0]);
    const text = format === "secret" ? z.union([read, z.instanceof(Secret)]) : read;
    return (format === "shell" ? shellText(text) : text).describe(description);
  } catch (cause) {
    throw invalid(`“${name}” is no JSON Schema: ${(cause as Error).message}`, node, cause);
  }
}

function hasDefault(node: SourceNode): boolean {
  return node.kind === "map" && node.entries.has("default");
}

function plainList(node: SourceNode | undefined): readonly string[] {
  if (node === undefined) return [];
  const plain = plainOf(node);
  if (Array.isArray(plain) && plain.every((one) => typeof one === "string")) return plain;
  throw invalid("required is a list of names", node);
}

function invalid(message: string, node: SourceNode, cause?: unknown): KcoreError {
  return new KcoreError(
    { code: "MODULE_INVALID", message, at: node.at, hint: "see docs/own-modules.md" },
    cause === undefined ? {} : { cause },
  );
}
