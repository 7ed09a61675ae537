import type { z } from "zod";
import type { ErrorCode } from "#errors/codes.ts";
import { KcoreError, type Problem } from "#errors/problem.ts";
import { isPlainWord } from "#base/quote.ts";
import { Secret } from "#engine/step/secret.ts";
import { shellReads, textAmong } from "#engine/step/shell-text.ts";
import { plainOf, type SourceNode, type SourceScalar } from "#engine/yaml/node.ts";
import { definitionOf } from "#engine/yaml/schema-keys.ts";
import type { BlockStatement, CallExpression, MustacheStatement, Program } from "./ast.ts";
import { mayHoldExpression, sourceAt, type Template, templateOfScalar, wholeExpression } from "./expression.ts";
import { Fault } from "./fault.ts";
import { scalarText } from "./helper.ts";
import { Interpreter } from "./interpret.ts";
import { type Quoting, QuotingScanner } from "./quoting.ts";
import { type References, referencesOfTemplate } from "./references.ts";
import type { Scope } from "./scope.ts";
import type { Sink } from "./text-output.ts";

/** A text that an operator wrote for a shell, and the shell's name. */
export interface ShellSource {
  readonly scalar: SourceScalar;
  readonly shell: string;
}

/** The texts in these arguments that a shell will read, by the schema's types. `values`: the arguments known so far. */
export function shellSources(
  schema: z.core.$ZodType,
  node: SourceNode | undefined,
  values: Readonly<Record<string, unknown>>,
): readonly ShellSource[] {
  if (node === undefined) return [];
  const read = shellReads.get(schema as z.ZodType);
  if (read !== undefined) {
    const at = read.as === "words" && node.kind === "list" ? textAmong(node.items.map(plainOf)) : undefined;
    const text = read.as === "text" ? node : node.kind === "list" && at !== undefined ? node.items[at] : undefined;
    if (text?.kind !== "scalar" || typeof text.value !== "string") return [];
    const shell = read.shell(values, text.value);
    return shell === undefined ? [] : [{ scalar: text, shell }];
  }
  const { shape, options, element, valueType, innerType, in: before } = definitionOf(schema);
  const within = (inner: z.core.$ZodType, some: SourceNode): readonly ShellSource[] =>
    shellSources(inner, some, values);
  if (options !== undefined) return options.flatMap((one) => within(one, node));
  const inner = innerType ?? before;
  if (inner !== undefined) return within(inner, node);
  if (node.kind === "list" && element !== undefined) return node.items.flatMap((item) => within(element, item));
  if (node.kind !== "map") return [];
  return [...node.entries.values()].flatMap(({ key, value }) => {
    const field = shape !== undefined && Object.hasOwn(shape, key) ? shape[key] : valueType;
    return field === undefined ? [] : within(field, value);
  });
}

/**
 * Refuses expressions that could put syntax into a text for a shell. `{{shell …}}` must stand where a word can; any other value
 * must be one plain word. A text that is one whole expression is not refused. Without a scope only the places are checked.
 * @throws KcoreError EXPRESSION_UNQUOTED; errors of {@link evaluate}
 */
export function refuseSyntax(scalar: SourceScalar, scope?: Scope): void {
  const template = partlyExpressions(scalar);
  if (template === undefined) return;
  const problems = misplacedExpressions(template, { quotes: isQuoted, code: "EXPRESSION_UNQUOTED" });
  if (problems.length > 0) throw new KcoreError(problems);
  if (scope !== undefined) new Interpreter(template).into(plainWords, scope);
}

/** Problems of a text whose values are unknown when it is read: each of its expressions must be `{{shell …}}`. */
export function unquotedProblems(scalar: SourceScalar): readonly Problem[] {
  const template = partlyExpressions(scalar);
  if (template === undefined) return [];
  const problems: Problem[] = [];
  const collectUnquoted = (program: Program | undefined): void => {
    for (const statement of program?.body ?? [])
      if (statement.type === "BlockStatement") [statement.program, statement.inverse].forEach(collectUnquoted);
      else if (statement.type === "MustacheStatement" && !isQuoted(statement)) {
        const { code, message, hint } = unquotedFault(statement);
        problems.push({ code, message, at: template.place(statement.loc), hint });
      }
  };
  collectUnquoted(template.program);
  return [...problems, ...misplacedExpressions(template, { quotes: isQuoted, code: "EXPRESSION_UNQUOTED" })];
}

function partlyExpressions(scalar: SourceScalar): Template | undefined {
  if (typeof scalar.value !== "string" || !mayHoldExpression(scalar.value)) return undefined;
  const template = templateOfScalar(scalar);
  return wholeExpression(template) === undefined ? template : undefined;
}

/** The maximum number of sample texts of a scalar. */
const MAX_SKELETONS = 16;

/**
 * Sample texts with the word `x` for each expression: with all blocks, with none, and with each block alone. Empty for a text that is one
 * whole expression.
 */
export function skeletonsOf(scalar: SourceScalar): readonly string[] {
  if (typeof scalar.value !== "string") return [];
  if (!mayHoldExpression(scalar.value)) return [scalar.value];
  const template = partlyExpressions(scalar);
  if (template === undefined) return [];
  const { program } = template;
  const alone = [...eachBlock(program, new Set())].map((taken) => sampleText(program, taken));
  return [...new Set([sampleText(program), sampleText(program, new Set()), ...alone])].slice(0, MAX_SKELETONS);
}

/** Each block, with the blocks around it that must be taken to reach it. */
function* eachBlock({ body }: Program, around: ReadonlySet<BlockStatement>): Generator<ReadonlySet<BlockStatement>> {
  for (const statement of body) {
    if (statement.type !== "BlockStatement") continue;
    const taken = new Set([...around, statement]);
    yield taken;
    if (statement.program) yield* eachBlock(statement.program, taken);
    if (statement.inverse) yield* eachBlock(statement.inverse, around);
  }
}

/** The text with only the blocks `taken`; without that argument, with all blocks. */
function sampleText({ body }: Program, taken?: ReadonlySet<BlockStatement>): string {
  const parts = body.map((statement) => {
    if (statement.type === "ContentStatement") return statement.value;
    if (statement.type === "MustacheStatement") return "x";
    if (statement.type !== "BlockStatement") return "";
    const branch = taken?.has(statement) === false ? statement.inverse : statement.program;
    return branch ? sampleText(branch, taken) : "";
  });
  return parts.join("");
}

/** Matches text before the first command. */
const beginsText = /^\s*["']?$/;
/** Matches text that ends a command. */
const endsCommand = /(?:[;\n]|&&|\|\|?)\s*$/;

/** References of the expressions that name commands in a text, and of the loops around those expressions. */
export function commandReferences(scalar: SourceScalar): References {
  const template = templateOfScalar(scalar);
  const scanner = new QuotingScanner();
  const found: MustacheStatement[] = [];
  let before = "";
  const collectCommands = ({ body }: Program, around: readonly MustacheStatement[]): void => {
    for (const statement of body) {
      if (statement.type === "BlockStatement") {
        const isInto = statement.path.type === "PathExpression" && ["each", "with"].includes(statement.path.original);
        const inner = isInto ? [...around, { ...statement, type: "MustacheStatement" } as const] : around;
        for (const branch of [statement.program, statement.inverse]) if (branch) collectCommands(branch, inner);
      }
      if (statement.type !== "ContentStatement" && statement.type !== "MustacheStatement") continue;
      const isMustache = statement.type === "MustacheStatement";
      const isFirst =
        beginsText.test(before) || (scanner.state === "word" && endsCommand.test(before.replaceAll("\\\n", "")));
      if (isMustache && isFirst) found.push(statement, ...around);
      if (isMustache) scanner.feedWord();
      else scanner.feed(statement.value);
      before += isMustache ? "x" : statement.value;
    }
  };
  collectCommands(template.program, []);
  return referencesOfTemplate({ ...template, program: { type: "Program", body: found } });
}

const hints: Readonly<Record<Exclude<Quoting, "word">, (expression: string) => string>> = {
  "in quotes": (it) => `end the quotes before it: "a b"${it}`,
  "in back quotes": () => "write $(…) instead of back quotes",
  "in an arithmetic expansion": (it) => `set a variable to it first: n=${it}`,
  "in a here-document": (it) => `print it: printf '%s\\n' ${it}`,
  "in a comment": () => "leave it out: a text of two lines would end the comment",
  "right behind a backslash": (it) => `put the backslash into quotes: '\\'${it}`,
  "right behind a $": (it) => `put the $ into quotes: '$'${it}`,
  "behind $'": () => "shells read $'…' differently: write printf",
  'behind a single quote in "${"': (it) =>
    `shells read it differently: write \\" instead, or set a variable to ${it} before`,
  "behind a case in $(": (it) => `set a variable to it before: x=${it}, or write the case outside of $(…)`,
};

interface QuotingRule {
  /** Whether an expression puts a quoted word into the text. */
  readonly quotes: (call: CallExpression) => boolean;
  /** The error of an expression at a wrong place. */
  readonly code: ErrorCode;
}

/** Problems of expressions whose quotes mean nothing at their place, and of blocks that leave quotes open; in the text's order. */
export function misplacedExpressions(template: Template, rule: QuotingRule): readonly Problem[] {
  return misplacedIn(template.program, template, rule, new QuotingScanner());
}

function misplacedIn(
  program: Program,
  template: Template,
  rule: QuotingRule,
  scanner: QuotingScanner,
  endsLine = true,
): readonly Problem[] {
  return program.body.flatMap((statement, index): readonly Problem[] => {
    if (statement.type === "ContentStatement") scanner.feed(statement.value);
    if (statement.type === "BlockStatement") {
      const next = program.body[index + 1];
      const isLast = next === undefined ? endsLine : next.type === "ContentStatement" && /^[ \t]*\n/.test(next.value);
      return [statement.program, statement.inverse].flatMap((inner) =>
        inner ? misplacedWithin(inner, statement, { template, rule, scanner, endsLine: isLast }) : [],
      );
    }
    if (statement.type !== "MustacheStatement") return [];
    const { state } = scanner;
    scanner.feedWord();
    if (state === "word" || !rule.quotes(statement)) return [];
    return [
      {
        code: rule.code,
        message: `this expression stands ${state}, where its own quotes mean nothing`,
        at: template.place(statement.loc),
        hint: hints[state](sourceAt(template, statement.loc)),
      },
    ];
  });
}

interface Branch {
  readonly template: Template;
  readonly rule: QuotingRule;
  readonly scanner: QuotingScanner;
  /** Whether the line ends right after the branch. */
  readonly endsLine: boolean;
}

/** Problems in a branch, which must close all quotes that it opens, or the quoting after the block would depend on the condition. */
function misplacedWithin(
  branch: Program,
  { path, loc }: BlockStatement,
  { template, rule, scanner, endsLine }: Branch,
): readonly Problem[] {
  const { context: before, state } = scanner;
  // The next iteration of `each` continues the line.
  const isEnd = endsLine && !(path.type === "PathExpression" && path.original === "each");
  const problems = misplacedIn(branch, template, rule, scanner, isEnd);
  if (isEnd && state !== "in a comment") scanner.endComment();
  if (scanner.context === before) return problems;
  const message = "this block opens quotes, or a here-document, that it does not close";
  return [
    ...problems,
    { code: rule.code, message, at: template.place(loc), hint: "put the whole word into the block" },
  ];
}

/** Whether an expression quotes its value itself. */
function isQuoted({ path, params }: CallExpression): boolean {
  // `shell` without arguments is not the helper but a name, such as a block's parameter.
  return path.type === "PathExpression" && path.original === "shell" && params.length > 0;
}

/** The fault of an expression whose value would reach a shell unquoted. */
function unquotedFault({ path, params }: CallExpression): Fault {
  const name = path.type === "PathExpression" ? path.original : "…";
  // `docker inspect --format '{{json .}}'`
  const isOfGo = params.some((param) => param.type === "PathExpression" && param.original === ".");
  return new Fault("this value would stand unquoted in a shell text", {
    code: "EXPRESSION_UNQUOTED",
    hint: `write {{shell ${params.length > 0 ? `(${name} …)` : name}}}${isOfGo ? "; for another program's braces \\{{…" : ""}`,
  });
}

const plainWords: Sink = {
  text: () => undefined,
  value: (value, call) => {
    const text = value instanceof Secret ? value.reveal() : scalarText(value);
    if (text !== undefined && !isPlainWord(text) && !isQuoted(call)) throw unquotedFault(call);
  },
};
