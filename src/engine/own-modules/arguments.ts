import { z } from "zod";
import { KcoreError } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import { Secret } from "#engine/step/secret.ts";
import { shellText } from "#engine/step/shell-text.ts";
import { nodeAt, plainOf, type SourceMap, type SourceNode } from "#engine/yaml/node.ts";
import { Problems } from "#engine/yaml/problems.ts";

/** The arguments of a module: what a step may give it, all their names, and the names of those that are code for a shell. */
export interface OwnArguments {
  readonly schema: z.ZodType<Readonly<Record<string, unknown>>>;
  readonly names: readonly string[];
  readonly code: ReadonlySet<string>;
}

const keywords = ["type", "properties", "required", "$defs", "additionalProperties", "description"];
/** Keywords of a property that say what it can be, and those that say nothing of it. */
const typed = ["type", "enum", "const", "$ref", "anyOf", "oneOf", "allOf"];
const annotations = ["default", "title", "examples", "deprecated", "$comment"];

/**
 * Reads `args`: a JSON Schema (draft 2020-12) of an object, whose properties each have a description. Other properties are refused;
 * `format: secret` lets a text be one of the roster's secrets, `format: shell` is code for a shell.
 * @throws KcoreError with every problem at its place
 */
export function readArguments(node: SourceNode | undefined): OwnArguments {
  if (node === undefined) return { schema: z.strictObject({}), names: [], code: new Set() };
  if (node.kind !== "map") throw invalid("args is a JSON Schema of an object: properties, required", node);
  const problems = new Problems();
  for (const { key, keyAt } of node.entries.values())
    if (!keywords.includes(key))
      problems.add({
        code: "YAML_KEY_UNKNOWN",
        message: `no key “${key}” is known in args`,
        at: keyAt,
        hint: suggestHint(key, keywords, `known here: ${keywords.join(", ")}`),
      });
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
  return { schema: z.strictObject(shape), names: Object.keys(shape), code: new Set(code.map(({ key }) => key)) };
}

function readProperty(name: string, node: SourceNode, whole: SourceMap): z.ZodType {
  if (!/^[a-z][A-Za-z0-9]*$/.test(name))
    throw invalid(`“${name}” cannot be an argument's name: camelCase is wanted`, node);
  const plain = plainOf(node);
  if (typeof plain !== "object" || plain === null || Array.isArray(plain))
    throw invalid(`“${name}” is no JSON Schema`, node);
  const { description, format, ...rest } = plain as Record<string, unknown>;
  if (typeof description !== "string") throw invalid(`“${name}” has no description`, node);
  // JSON Schema's rules are for values of their own type, and hold for all others.
  if (Object.keys(rest).some((key) => !annotations.includes(key)) && !typed.some((key) => key in rest))
    throw invalid(`“${name}” has no type, and without one nothing is checked`, node);
  const definitions = whole.get("$defs");
  const schema = {
    ...rest,
    ...(format !== undefined && format !== "secret" && format !== "shell" ? { format } : {}),
    ...(definitions ? { $defs: plainOf(definitions) } : {}),
  };
  try {
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
