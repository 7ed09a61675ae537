import { z } from "zod";
import { KcoreError, type Problem, type SourcePosition } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import type { SourceNode } from "#engine/yaml/node.ts";
import { nodeAt } from "#engine/yaml/node.ts";
import { listNames } from "#engine/expressions/members.ts";
import { type ParamType, typeNames } from "./param-types.ts";
import { Problems } from "#engine/yaml/problems.ts";
import { validate } from "#engine/yaml/validate.ts";
import { omitUndefined } from "#base/omit-undefined.ts";

/** One parameter as a state or orchestration declares it. */
export interface ParamDeclaration {
  readonly name: string;
  readonly type: ParamType;
  readonly required: boolean;
  readonly description?: string;
  /** The question at a terminal for a value that was not given. */
  readonly prompt?: string;
  /** The values of an `enum`; for another type, the only allowed values. */
  readonly oneOf?: readonly (string | number)[];
  /** As written; may hold expressions over `node`, `nodes`, `vars` and `run`. */
  readonly default?: SourceNode;
  readonly at: SourcePosition;
}

export type ParamDeclarations = ReadonlyMap<string, ParamDeclaration>;

/** A file's declaration of one parameter. */
export const Declaration = z.strictObject({
  type: z.enum(typeNames).describe("The type of the value; size gives bytes, duration seconds, target names of nodes."),
  required: z.boolean().optional().describe("Must the parameter be given? Another one has its default, or null."),
  description: z.string().optional().describe("The purpose."),
  prompt: z
    .string()
    .regex(/^\P{Cc}{1,200}$/u, "must be one line")
    .optional()
    .describe("The question at a terminal when the parameter is not given; the parameter is then required."),
  oneOf: z
    .array(z.union([z.string(), z.number()]))
    .min(1)
    .optional()
    .describe("The only values that the parameter may have."),
  default: z.unknown().optional().describe("The value when none is given; may use node, nodes, vars and run."),
});

/**
 * Reads a `params:` map: name → { type, default, required, description, oneOf }.
 * @throws KcoreError with every problem at its place.
 */
export function declareParams(node: SourceNode | undefined): ParamDeclarations {
  const declared = new Map<string, ParamDeclaration>();
  if (node === undefined || (node.kind === "scalar" && node.value === null)) return declared;
  const problems = new Problems();
  if (node.kind !== "map")
    throw new KcoreError({ code: "PARAM_INVALID", message: "params must be a map of names", at: node.at });
  for (const { key, keyAt, value } of node.entries.values()) {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(key))
      problems.add(invalid(`“${key}” cannot name a parameter`, keyAt, "letters, digits and _ only"));
    const declaration = problems.attempt(() => validate(value, Declaration));
    if (declaration === undefined) continue;
    const { type, prompt, required = prompt !== undefined, description, oneOf } = declaration;
    const defaultNode = nodeAt(value, ["default"]);
    if (type === "enum" && oneOf === undefined)
      problems.add(invalid(`“${key}” needs oneOf, a list of its values`, keyAt));
    if (required && defaultNode !== undefined)
      problems.add(invalid(`“${key}” is required and has a default`, keyAt, "remove one of them"));
    declared.set(key, {
      name: key,
      type,
      required,
      at: keyAt,
      ...omitUndefined({ description, prompt, oneOf, default: defaultNode }),
    });
  }
  problems.throwIfAny();
  return declared;
}

function invalid(message: string, at: SourcePosition, hint?: string): Problem {
  return { code: "PARAM_INVALID", message, at, hint };
}

/** The problem of a name that is not declared; `owner`: `state “nix”`. */
export function unknownParam(
  name: string,
  declared: ParamDeclarations,
  { owner, at }: { readonly owner: string; readonly at?: SourcePosition | undefined },
): Problem {
  const names = [...declared.keys()];
  const hint = suggestHint(name, names, names.length === 0 ? `${owner} takes none` : listNames(names));
  return {
    code: "PARAM_UNKNOWN",
    message: `${owner} has no parameter “${name}”`,
    at,
    hint,
  };
}

/** The problem of a required parameter that was not given. */
export function missingParam(
  { name, type, description }: ParamDeclaration,
  { owner, at }: { readonly owner: string; readonly at?: SourcePosition | undefined },
): Problem {
  const what = description === undefined ? `, ${type}` : `: ${description}`;
  return {
    code: "PARAM_MISSING",
    message: `${owner} needs the parameter “${name}”`,
    at,
    hint: `give it, ${name}${what}`,
  };
}
