import { argumentsOf, type Expression, type Program } from "./ast.ts";
import { mayHoldExpression, type Template, templateOfScalar } from "./expression.ts";
import type { SourceNode } from "#engine/yaml/node.ts";
import { requireOpen } from "#engine/step/encrypted-value.ts";
import { hasMember } from "./members.ts";
import type { Scope } from "./scope.ts";

/** The paths in expressions, found without evaluating them. */
export class References {
  /** Each path as its parts. */
  readonly paths: readonly (readonly string[])[];

  constructor(paths: readonly (readonly string[])[]) {
    this.paths = paths;
  }

  /** Whether a path begins with `facts`. */
  get facts(): boolean {
    return this.names.has("facts");
  }

  /** The names in paths `steps.NAME`. */
  get steps(): ReadonlySet<string> {
    return this.#namesBehind("steps");
  }

  /** The names in paths `stages.NAME`. */
  get stages(): ReadonlySet<string> {
    return this.#namesBehind("stages");
  }

  /** The names in paths `params.NAME`. */
  get params(): ReadonlySet<string> {
    return this.#namesBehind("params");
  }

  /** First parts of all paths. */
  get names(): ReadonlySet<string> {
    return new Set(this.paths.flatMap(([name]) => name ?? []));
  }

  #namesBehind(root: string): ReadonlySet<string> {
    return new Set(this.paths.flatMap(([name, second]) => (name === root ? (second ?? []) : [])));
  }
}

/** The references in the expressions of a tree, in blocks and helper arguments too. @throws KcoreError EXPRESSION_SYNTAX */
export function referencesOf(node: SourceNode | undefined): References {
  return new References(node === undefined ? [] : [...pathsInNode(node)]);
}

type PartialOf = (name: string) => Template | undefined;

/** The references in a template, and in the templates that it includes if `partial` finds them. */
export function referencesOfTemplate({ program }: Template, partial?: PartialOf): References {
  return new References([...pathsIn(program, partial)]);
}

export function mergeReferences(all: readonly References[]): References {
  return new References(all.flatMap(({ paths }) => paths));
}

function* pathsInNode(node: SourceNode): Generator<readonly string[]> {
  if (node.kind === "list") for (const item of node.items) yield* pathsInNode(item);
  else if (node.kind === "map") for (const { value } of node.entries.values()) yield* pathsInNode(value);
  else if (typeof node.value === "string" && mayHoldExpression(node.value))
    yield* pathsIn(templateOfScalar(node).program);
}

/** `included`: names of the templates that were read already. */
function* pathsIn(
  { body }: Program,
  partial: PartialOf = () => undefined,
  included = new Set<string>(),
): Generator<readonly string[]> {
  for (const statement of body) {
    if (statement.type === "MustacheStatement" || statement.type === "BlockStatement") yield* pathsOf(statement.path);
    if ("params" in statement) for (const expression of argumentsOf(statement)) yield* pathsOf(expression);
    if (statement.type === "BlockStatement")
      for (const inner of [statement.program, statement.inverse]) if (inner) yield* pathsIn(inner, partial, included);
    const name = statement.type === "PartialStatement" ? partialName(statement.name) : undefined;
    if (name === undefined || included.has(name)) continue;
    included.add(name);
    const template = partial(name);
    if (template) yield* pathsIn(template.program, partial, included);
  }
}

function* pathsOf(expression: Expression): Generator<readonly string[]> {
  if (expression.type === "PathExpression") {
    const { parts, data } = expression;
    // `@root.facts` means the same as `facts`; other data names hold no reference.
    const path = data ? (parts[0] === "root" ? parts.slice(1) : []) : parts;
    if (path.length > 0) yield path;
  }
  if (expression.type !== "SubExpression") return;
  yield* pathsOf(expression.path);
  for (const inner of argumentsOf(expression)) yield* pathsOf(inner);
}

/** The name of a partial, `{{> common.hbs}}` or `{{> "nginx/common.hbs"}}`; undefined if an expression computes it. */
export function partialName(name: Expression): string | undefined {
  if (name.type === "StringLiteral") return name.value;
  return name.type === "PathExpression" ? name.original : undefined;
}

/**
 * Requires that the sealed values that a late expression names are open before the run: during the run the expression cannot
 * wait for a value. A reference to a whole node, or to all nodes, requires nothing: it would open every secret of the roster.
 * @throws UnopenedValue for the first value that is not open yet
 */
export function requireReferredOpen({ paths }: Pick<References, "paths">, scope: Scope): void {
  for (const path of paths) {
    const value = valueAt(scope, path);
    const isWhole = (path[0] === "node" && path.length === 1) || (path[0] === "nodes" && path.length <= 2);
    if (!isWhole) requireOpen(value);
  }
}

function valueAt(scope: Scope, path: readonly string[]): unknown {
  let value: unknown = scope;
  for (const part of path) {
    if (!hasMember(value, part)) return undefined;
    value = value instanceof Map ? value.get(part) : (value as Record<string, unknown>)[part];
  }
  return value;
}
