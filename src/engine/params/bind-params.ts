import type { Problem, SourcePosition } from "#errors/problem.ts";
import { KcoreError } from "#errors/problem.ts";
import { isEncrypted, encryptedValue, whileOpening } from "#engine/step/encrypted-value.ts";
import { Secret } from "#engine/step/secret.ts";
import type { SecretReference } from "./secret-reference.ts";
import { evaluate, hasExpressions } from "#engine/expressions/evaluate.ts";
import { Fault } from "#engine/expressions/fault.ts";
import { plainOf, type SourceNode } from "#engine/yaml/node.ts";
import { coerceText, coerceValue, referenceOfLiteral } from "./param-types.ts";
import { missingParam, type ParamDeclaration, type ParamDeclarations, unknownParam } from "./declare-params.ts";
import { parseSource } from "#engine/yaml/parse.ts";
import { Problems } from "#engine/yaml/problems.ts";
import { type References, referencesOf, requireReferredOpen } from "#engine/expressions/references.ts";
import type { Scope } from "#engine/expressions/scope.ts";
import { refuseSyntax } from "#engine/expressions/shell-values.ts";
import { type Needs, Unknown, UnknownValue } from "#engine/expressions/unknown.ts";

/**
 * Reads a secret; see `resolveSecret` of the roster. A check needs no secret and gets an Unknown. @throws KcoreError SECRET_UNREADABLE
 */
export type SecretReader = (reference: SecretReference, at?: SourcePosition) => Promise<Secret | Unknown>;

/** The reader for callers that need the Secret itself. It throws UnknownValue instead of returning an Unknown. */
export function secretOf(read: SecretReader): (...args: Parameters<SecretReader>) => Promise<Secret> {
  return async (...args) => {
    const value = await read(...args);
    if (value instanceof Unknown) throw new UnknownValue(value);
    return value;
  };
}

/** One value given to a parameter: text of the command line, or a node of a file with the scope of its expressions. */
export type GivenParam =
  | { readonly text: string }
  | { readonly node: SourceNode; readonly scope?: Scope }
  /** A computed value; an Unknown stays one. */
  | { readonly value: unknown; readonly at?: SourcePosition };

export interface BindOptions {
  /** The owner of the parameters, for messages: `state “nix”`. */
  readonly owner: string;
  /** The place of the map of given values, for the problem of a missing value. */
  readonly at?: SourcePosition;
  /** The names that defaults may use: node, nodes, vars, run. */
  readonly scope?: Scope;
  /** Needed for parameters of type `secret`, and to open sealed values in texts. */
  readonly readSecret?: SecretReader;
}

/**
 * The values of declared parameters: given values, coerced to the parameters' types, else defaults, else null. A value that
 * depends on an Unknown is an Unknown with the same needs.
 * @throws KcoreError with every unknown, missing or wrong parameter.
 */
export async function bindParams(
  declared: ParamDeclarations,
  given: ReadonlyMap<string, GivenParam>,
  options: BindOptions,
): Promise<Record<string, unknown>> {
  const problems = new Problems();
  for (const [name, value] of given)
    if (!declared.has(name)) problems.add(unknownParam(name, declared, { ...options, at: placeOf(value) }));
  const values = Object.create(null) as Record<string, unknown>;
  for (const declaration of declared.values()) {
    const { name } = declaration;
    values[name] = await problems.attemptAsync(() => bindOne(declaration, given.get(name), options));
  }
  problems.throwIfAny();
  return values;
}

function placeOf(given: GivenParam): SourcePosition | undefined {
  if ("node" in given) return given.node.at;
  return "value" in given ? given.at : undefined;
}

async function bindOne(
  declaration: ParamDeclaration,
  given: GivenParam | undefined,
  options: BindOptions,
): Promise<unknown> {
  if (given !== undefined && "text" in given)
    return located(declaration, undefined, () => bindText(declaration, given.text, options));
  if (given !== undefined && "value" in given) {
    const { value, at } = given;
    return located(declaration, at, () =>
      value instanceof Unknown || value === null ? value : coerceValue(declaration, value),
    );
  }
  const node = given?.node ?? declaration.default;
  if (node === undefined) {
    if (declaration.required) throw new KcoreError(missingParam(declaration, options));
    return null;
  }
  const scope = given === undefined ? options.scope : given.scope;
  return located(declaration, node.at, () => bindNode(declaration, node, scope ?? {}, options));
}

function bindText(declaration: ParamDeclaration, text: string, options: BindOptions): unknown {
  if (declaration.type !== "secret") return coerceText(declaration, text);
  return isEncrypted(text) ? encryptedValue(text) : readSecret(referenceOfLiteral(text), undefined, options);
}

function bindNode(declaration: ParamDeclaration, node: SourceNode, scope: Scope, options: BindOptions): unknown {
  if (declaration.type === "secret" && !hasExpressions(node) && !(node.kind === "scalar" && isEncrypted(node.value)))
    return node.kind === "scalar" && node.value === null
      ? null
      : readSecret(referenceOfLiteral(plainOf(node)), node.at, options);
  return openingWith(options, () => {
    const value = evaluateOrUnknown(node, scope);
    if (value instanceof Unknown) requireReferredOpen(referencesOf(node), scope);
    if (value instanceof Unknown || (value === null && !declaration.required)) return value;
    if (declaration.type === "secret" && typeof value === "string") return secretOfText(value, node, scope, options);
    return coerceValue(declaration, value);
  });
}

/** Opens a sealed value that an expression puts into a text. A value that is passed on unchanged stays sealed until a step needs it. */
function openingWith({ readSecret: read }: BindOptions, work: () => unknown): unknown {
  return read === undefined ? work() : whileOpening(secretOf(read), work);
}

/**
 * A text of an expression, for a parameter of type `secret`. Only a text of the roster itself is read as a
 * reference: a text that came from a node must never name a command for the bastion to run (S-4).
 */
function secretOfText(value: string, node: SourceNode, scope: Scope, options: BindOptions): unknown {
  const fromRoster = [...referencesOf(node).names].every((name) => ["node", "nodes", "vars", "shell"].includes(name));
  if (fromRoster && node.kind === "scalar" && value.startsWith("command:")) refuseSyntax(node, scope);
  // A sealed value counts only where a file holds it and its place was checked, never in a composed text.
  if (fromRoster && !isEncrypted(value)) return readSecret(referenceOfLiteral(value), node.at, options);
  return new Secret(value);
}

function readSecret(
  reference: SecretReference,
  at: SourcePosition | undefined,
  options: BindOptions,
): Promise<Secret | Unknown> {
  if (options.readSecret === undefined) throw new Error("a parameter of type secret needs readSecret");
  return options.readSecret(reference, at);
}

function evaluateOrUnknown(node: SourceNode, scope: Scope): unknown {
  try {
    return evaluate(node, scope);
  } catch (error) {
    if (!(error instanceof UnknownValue)) throw error;
    return unknownOf(node, scope, error.unknown);
  }
}

/** An Unknown with the needs of all the node's expressions, not only of the first of them. */
export function unknownOf(node: SourceNode, scope: Scope, { after }: Unknown): Unknown {
  return new Unknown(after, lateNeeds(referencesOf(node), scope));
}

/** The late values that references wait for, also through Unknown parameters. */
export function lateNeeds({ facts, steps, stages, params }: References, scope: Scope): Needs {
  const values = scope["params"] as Record<string, unknown> | undefined;
  const inner = [...params].map((name) => values?.[name]).filter((value) => value instanceof Unknown);
  const isUnknown = (root: string, name: string): boolean => {
    const all = scope[root];
    if (all instanceof Unknown) return true;
    const value: unknown = all instanceof Map ? all.get(name) : (all as Record<string, unknown> | undefined)?.[name];
    return value instanceof Unknown;
  };
  const unknownSteps = [...steps].filter((name) => isUnknown("steps", name));
  const unknownStages = [...stages].filter((name) => isUnknown("stages", name));
  return {
    facts: (facts && scope["facts"] instanceof Unknown) || inner.some(({ needs }) => needs.facts),
    steps: union(unknownSteps, ...inner.map(({ needs }) => needs.steps)),
    stages: union(unknownStages, ...inner.map(({ needs }) => needs.stages)),
  };
}

/**
 * The value of a parameter that was Unknown, once more is known; a text for a parameter of type `secret` is the
 * secret itself, never a reference (S-4). Still Unknown if more is missing.
 * @throws KcoreError at the node
 */
export function coerceLate(declaration: ParamDeclaration, node: SourceNode, scope: Scope): unknown {
  const value = evaluateOrUnknown(node, scope);
  if (value instanceof Unknown || (value === null && !declaration.required)) return value;
  if (declaration.type === "secret" && typeof value === "string") return new Secret(value);
  try {
    return coerceValue(declaration, value);
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    throw problemOf(declaration, error, node.at);
  }
}

function union(...lists: readonly (readonly string[])[]): string[] {
  return [...new Set(lists.flat())];
}

async function located(
  { name }: ParamDeclaration,
  at: SourcePosition | undefined,
  work: () => unknown,
): Promise<unknown> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    throw problemOf({ name }, error, at);
  }
}

function problemOf({ name }: Pick<ParamDeclaration, "name">, fault: Fault, at: SourcePosition | undefined): KcoreError {
  const { code, message, hint } = fault;
  const problem: Problem = {
    code,
    message: `the parameter “${name}” ${message}`,
    at,
    hint,
    ...(code === "SECRET_LITERAL" && { conceal: true }),
  };
  return new KcoreError(problem, { cause: fault });
}

/** The values of a map: `with:` of an include, or the file of `--params`. @throws KcoreError PARAM_INVALID */
export function givenFromNode(node: SourceNode | undefined, scope?: Scope): Map<string, GivenParam> {
  if (node === undefined || (node.kind === "scalar" && node.value === null)) return new Map();
  if (node.kind !== "map")
    throw new KcoreError({ code: "PARAM_INVALID", message: "parameters are given as a map of names", at: node.at });
  return new Map(
    [...node.entries.values()].map(({ key, value }) => [key, { node: value, ...(scope && { scope }) }] as const),
  );
}

/** The values of `--params JSON`; YAML is read as well. @throws KcoreError */
export function givenFromText(text: string): Map<string, GivenParam> {
  return givenFromNode(parseSource("--params", text));
}
