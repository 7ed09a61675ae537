import { type Expression, expressionsOf, type PathExpression, type Program, type Statement } from "./ast.ts";
import { mayHoldExpression, type Template, templateOfScalar } from "./expression.ts";
import type { SourceNode } from "#engine/yaml/node.ts";
import { needOpen } from "#engine/step/sealed.ts";
import { hasMember } from "./members.ts";
import type { Scope } from "./scope.ts";

/** The paths in expressions, found without evaluating them. */
export class References {
  /** Each path as its parts. */
  readonly paths: readonly (readonly string[])[];

  constructor(paths: readonly (readonly string[])[]) {
    this.paths = paths;
  }

  get facts(): boolean {
    return this.names.has("facts");
  }

  /** Names after `steps.`. */
  get steps(): ReadonlySet<string> {
    return this.#namesBehind("steps");
  }

  get stages(): ReadonlySet<string> {
    return this.#namesBehind("stages");
  }

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

/** The names in the expressions of a tree, in blocks and helper arguments too. @throws KcoreError EXPRESSION_SYNTAX */
export function referencesOf(node: SourceNode | undefined): References {
  const found = new Collector();
  if (node !== undefined) found.node(node);
  return new References(found.paths);
}

/** The names in a template; `partial` gives the templates that it includes. */
export function referencesOfTemplate(
  template: Template,
  partial: (name: string) => Template | undefined = () => undefined,
): References {
  const found = new Collector(partial);
  found.program(template.program);
  return new References(found.paths);
}

/** All of them together. */
export function mergeReferences(all: readonly References[]): References {
  return new References(all.flatMap(({ paths }) => paths));
}

class Collector {
  readonly paths: (readonly string[])[] = [];
  readonly #partial: (name: string) => Template | undefined;
  readonly #visited = new Set<string>();

  constructor(partial: (name: string) => Template | undefined = () => undefined) {
    this.#partial = partial;
  }

  node(node: SourceNode): void {
    if (node.kind === "list") for (const item of node.items) this.node(item);
    else if (node.kind === "map") for (const { value } of node.entries.values()) this.node(value);
    else if (typeof node.value === "string" && mayHoldExpression(node.value))
      this.program(templateOfScalar(node).program);
  }

  program(program: Program): void {
    for (const statement of program.body) this.#statement(statement);
  }

  #statement(statement: Statement): void {
    switch (statement.type) {
      case "MustacheStatement":
      case "BlockStatement":
        this.#expression(statement.path);
        for (const expression of expressionsOf(statement)) this.#expression(expression);
        if (statement.type === "BlockStatement")
          for (const program of [statement.program, statement.inverse])
            if (program !== undefined) this.program(program);
        break;
      case "PartialStatement":
        for (const expression of expressionsOf(statement)) this.#expression(expression);
        this.#include(statement.name);
        break;
      default:
        break;
    }
  }

  #include(name: Expression): void {
    const text = partialName(name);
    if (text === undefined || this.#visited.has(text)) return;
    this.#visited.add(text);
    const template = this.#partial(text);
    if (template !== undefined) this.program(template.program);
  }

  #expression(expression: Expression): void {
    if (expression.type === "PathExpression") this.#path(expression);
    if (expression.type !== "SubExpression") return;
    this.#expression(expression.path);
    for (const inner of expressionsOf(expression)) this.#expression(inner);
  }

  #path({ parts, data }: PathExpression): void {
    // `@root.facts` means the same as `facts`; other data names hold no reference.
    const path = data ? (parts[0] === "root" ? parts.slice(1) : []) : parts;
    if (path.length > 0) this.paths.push(path);
  }
}

/** The name of a partial that is written out: `{{> common.hbs}}` or `{{> "nginx/common.hbs"}}`. */
export function partialName(name: Expression): string | undefined {
  if (name.type === "StringLiteral") return name.value;
  return name.type === "PathExpression" ? name.original : undefined;
}

/**
 * Opens the sealed values that a late expression names before the run, since the expression cannot wait for one then. A reference to
 * a whole node, or to all nodes, opens nothing: that would be every secret of the roster.
 * @throws SealedValue for the first that is not open yet
 */
export function openReferred({ paths }: Pick<References, "paths">, scope: Scope): void {
  for (const path of paths) {
    const value = valueAt(scope, path);
    const isWhole = (path[0] === "node" && path.length === 1) || (path[0] === "nodes" && path.length <= 2);
    if (!isWhole) needOpen(value);
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
