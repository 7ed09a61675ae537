import type { SourcePosition } from "#errors/problem.ts";
import { KcoreError } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import type { Secret } from "#engine/step/secret.ts";
import type {
  BlockStatement,
  CallExpression,
  Expression,
  Loc,
  PartialStatement,
  PathExpression,
  Program,
  TemplateStatement,
} from "./ast.ts";
import { foreignHint, type Template } from "./expression.ts";
import { Fault } from "./fault.ts";
import { BlockFrame } from "./block-frame.ts";
import { callHelper, helpers } from "./helpers.ts";
import { isTruthy } from "./helpers-logic.ts";
import { entriesOf, hasMember, isMapValue, memberOf } from "./members.ts";
import { describeValue } from "#engine/yaml/node.ts";
import { isContextPath, pathValue } from "./path-value.ts";
import { partialName } from "./references.ts";
import type { Scope } from "./scope.ts";
import { type Sink, TextOutput } from "./text-output.ts";
import { Attempts } from "./unknown.ts";

const MAX_PARTIAL_DEPTH = 20;
const BLOCKS = ["if", "unless", "each", "with"];
/** Roots whose members are declared: a missing member is an error even in `default`. */
const DECLARED_ROOTS = new Set(["params", "steps", "stages", "run"]);

export interface InterpretOptions {
  /** The template that `{{> name}}` includes. @throws KcoreError TEMPLATE_NOT_FOUND */
  readonly partial?: (name: string, at: SourcePosition) => Template;
}

/**
 * Walks Handlebars' syntax tree itself instead of running the code that Handlebars would compile. Values keep their types,
 * a missing name is an error everywhere, only own properties are seen, and no code is made.
 */
export class Interpreter {
  readonly #options: InterpretOptions;
  #template: Template;
  #partials = 0;
  readonly #attempts = new Attempts();
  /** Set at the depth limit: a template that includes itself twice would else be walked 2^20 times. */
  #isEndless = false;

  constructor(template: Template, options: InterpretOptions = {}) {
    this.#template = template;
    this.#options = options;
  }

  /** The value of the one expression that a scalar consists of. @throws KcoreError, UnknownValue */
  value(call: CallExpression, scope: Scope): unknown {
    return this.#call(call, BlockFrame.top(scope));
  }

  /** The text; a {@link Secret} if a secret went into it. @throws KcoreError with every problem, UnknownValue */
  text(scope: Scope): string | Secret {
    const output = new TextOutput();
    this.into(output, scope);
    return output.result();
  }

  /** Writes the parts of the text to `output`; values keep their types. @throws KcoreError with every problem, UnknownValue */
  into(output: Sink, scope: Scope): void {
    this.#program(this.#template.program, BlockFrame.top(scope), output);
    this.#attempts.end();
  }

  #program(program: Program, frame: BlockFrame, output: Sink): void {
    for (const statement of program.body) {
      if (this.#isEndless) return;
      this.#attempts.run(() => this.#statement(statement, frame, output));
    }
  }

  #statement(statement: TemplateStatement, frame: BlockFrame, output: Sink): void {
    switch (statement.type) {
      case "ContentStatement":
        output.text(statement.value);
        return;
      case "CommentStatement":
        return;
      case "MustacheStatement":
        this.#located(statement.loc, () => output.value(this.#call(statement, frame), statement));
        return;
      case "BlockStatement":
        this.#block(statement, frame, output);
        return;
      case "PartialStatement":
        this.#partial(statement, frame, output);
        return;
      default:
        this.#refuse(statement.loc, "decorators and partial blocks are not known here");
    }
  }

  #block(block: BlockStatement, frame: BlockFrame, output: Sink): void {
    const name = block.path.type === "PathExpression" ? block.path.original : "";
    const [argument] = block.params;
    if (!BLOCKS.includes(name))
      this.#refuse(
        block.path.loc,
        `no block “#${name}”`,
        suggestHint(name, BLOCKS, `the blocks are ${BLOCKS.join(", ")}`),
      );
    if (argument === undefined || block.params.length > 1 || block.hash !== undefined)
      this.#refuse(block.loc, `#${name} takes one argument`);
    const value = this.#expression(argument, frame);
    if (name === "each") this.#each(block, argument, value, frame, output);
    else if (name === "with") this.#with(block, value, frame, output);
    else this.#branch(block, isTruthy(value) === (name === "if"), frame, output);
  }

  #branch(block: BlockStatement, condition: boolean, frame: BlockFrame, output: Sink): void {
    const program = condition ? block.program : block.inverse;
    if (program !== undefined) this.#program(program, frame, output);
  }

  #with({ program, inverse }: BlockStatement, value: unknown, frame: BlockFrame, output: Sink): void {
    if (value === null && inverse !== undefined) this.#program(inverse, frame, output);
    else if (program !== undefined)
      this.#program(program, frame.inside(value, {}, program.blockParams, [value]), output);
  }

  #each(block: BlockStatement, argument: Expression, value: unknown, frame: BlockFrame, output: Sink): void {
    const { program, inverse } = block;
    const items: readonly (readonly [string | number, unknown])[] = Array.isArray(value)
      ? value.map((item, index) => [index, item] as const)
      : isMapValue(value)
        ? entriesOf(value)
        : this.#fail(argument.loc, new Fault(`#each goes through a list or a map, not ${describeValue(value)}`));
    if (items.length === 0 && inverse !== undefined) this.#program(inverse, frame, output);
    if (program === undefined) return;
    for (const [index, [key, item]] of items.entries()) {
      const data = { index, key, first: index === 0, last: index === items.length - 1 };
      this.#program(program, frame.inside(item, data, program.blockParams, [item, key]), output);
    }
  }

  #partial(statement: PartialStatement, frame: BlockFrame, output: Sink): void {
    const { name, params, hash, indent, loc } = statement;
    const text = partialName(name);
    if (text === undefined || params.length > 1)
      this.#refuse(loc, "a partial is written {{> name}}, its name written out");
    const { partial } = this.#options;
    if (partial === undefined) this.#refuse(loc, "partials work in files under templates/ only");
    if (this.#partials >= MAX_PARTIAL_DEPTH) {
      this.#isEndless = true;
      this.#fail(
        loc,
        new Fault(`“${text}” includes itself, or more than ${MAX_PARTIAL_DEPTH} deep`, { code: "TEMPLATE_RECURSION" }),
      );
    }
    const [context] = params;
    const names = Object.fromEntries(this.#named(hash, frame));
    const inner =
      context === undefined ? frame.with(names) : frame.inside(this.#expression(context, frame), {}).with(names);
    const outer = this.#template;
    const part = new TextOutput();
    this.#template = partial(text, this.#template.place(name.loc));
    this.#partials++;
    try {
      this.#program(this.#template.program, inner, part);
    } finally {
      this.#template = outer;
      this.#partials--;
    }
    output.value(part.result(indent), { path: name, params, loc });
  }

  /** A mustache or a sub-expression: a helper with arguments, or the value of a path. */
  #call(call: CallExpression, frame: BlockFrame): unknown {
    const { path, params, hash, loc } = call;
    if (params.length === 0 && hash === undefined) {
      if (path.type !== "PathExpression" || !isHelperName(path) || frame.has(path.parts[0] ?? ""))
        return this.#expression(path, frame);
      if (helpers.get(path.original)?.min !== 0)
        this.#refuse(
          loc,
          `${path.original} is a helper and needs arguments`,
          `write ${path.original} ${helpers.get(path.original)?.usage ?? ""}`,
        );
    }
    if (path.type !== "PathExpression" || path.parts.length !== 1 || path.data || path.depth > 0)
      this.#refuse(path.loc, "only a helper takes arguments");
    // The faults of all arguments are reported together.
    const attempts = new Attempts();
    const values = params.map((argument, index) =>
      attempts.run(() =>
        path.original === "default" && index === 0
          ? this.#expressionOrNothing(argument, frame)
          : this.#expression(argument, frame),
      ),
    );
    const named = new Map(
      hash?.pairs.map(({ key, value }) => [key, attempts.run(() => this.#expression(value, frame))]),
    );
    const decides = helpers.get(path.original)?.decides;
    if (attempts.isUnknown && decides !== undefined && values.includes(decides)) return decides;
    attempts.end();
    return this.#located(loc, () => callHelper(path.original, values, named), params);
  }

  #named(hash: CallExpression["hash"], frame: BlockFrame): Map<string, unknown> {
    return new Map(hash?.pairs.map(({ key, value }) => [key, this.#expression(value, frame)]));
  }

  #expression(expression: Expression, frame: BlockFrame): unknown {
    switch (expression.type) {
      case "StringLiteral":
      case "NumberLiteral":
      case "BooleanLiteral":
        return expression.value;
      case "NullLiteral":
        return null;
      case "UndefinedLiteral":
        return this.#refuse(expression.loc, "undefined is not a value", "write null");
      case "SubExpression":
        return this.#call(expression, frame);
      case "PathExpression":
        return this.#located(expression.loc, () => pathValue(expression, frame));
    }
  }

  /** The first argument of `default`: undefined if the last part of its path is absent and need not be declared. */
  #expressionOrNothing(expression: Expression, frame: BlockFrame): unknown {
    if (expression.type !== "PathExpression") return this.#expression(expression, frame);
    const { parts, depth, data } = expression;
    const [head = ""] = parts;
    const isOfBlock = isContextPath(expression) && !frame.isScope(depth);
    const isDeclared = !isOfBlock && DECLARED_ROOTS.has(head) && !frame.shadows(head);
    if (parts.length < (isOfBlock ? 1 : 2) || data || isDeclared) return this.#expression(expression, frame);
    const parent = this.#expression({ ...expression, parts: parts.slice(0, -1) }, frame);
    const last = parts.at(-1) ?? "";
    if (parent === null || !hasMember(parent, last)) return undefined;
    return this.#located(expression.loc, () => memberOf(parent, last, () => parts.slice(0, -1).join(".")));
  }

  /** Runs `work`. A fault becomes a KcoreError at `loc`, or at the argument that the fault names. */
  #located<T>(loc: Loc, work: () => T, params: readonly Expression[] = []): T {
    try {
      return work();
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      return this.#fail(error.argument === undefined ? loc : (params[error.argument]?.loc ?? loc), error);
    }
  }

  #refuse(loc: Loc, message: string, hint?: string): never {
    this.#fail(loc, new Fault(message, { code: "EXPRESSION_SYNTAX", hint }));
  }

  #fail(loc: Loc, fault: Fault): never {
    const { code, message } = fault;
    const hint = (code === "EXPRESSION_UNDEFINED" ? foreignHint(this.#template.text) : undefined) ?? fault.hint;
    throw new KcoreError({ code, message, at: this.#template.place(loc), hint }, { cause: fault });
  }
}

function isHelperName({ parts, depth, data, original }: PathExpression): boolean {
  return parts.length === 1 && depth === 0 && !data && helpers.has(original);
}
