import { KcoreError, type Problem } from "#errors/problem.ts";
import type { Loc, Program } from "#engine/expressions/ast.ts";
import { type Template, templateOfScalar } from "#engine/expressions/expression.ts";
import { Fault } from "#engine/expressions/fault.ts";
import { Interpreter, type Sink } from "#engine/expressions/interpret.ts";
import type { Scope } from "#engine/expressions/scope.ts";
import { Blob } from "#engine/step/blob.ts";
import { Secret } from "#engine/step/secret.ts";
import { rawSh, sh, type Sh, type ShWord } from "#engine/step/sh.ts";
import { describeValue, type SourceScalar } from "#engine/yaml/node.ts";
import { type Quoting, QuotingScanner } from "./quoting.ts";

/**
 * A text of sh whose expressions are words: each value is quoted, a list becomes several words, a secret or a file travels apart. So no
 * value can become syntax; an expression within quotes, where its own quotes would end them, is refused when the text is read.
 */
export interface ShellTemplate {
  /** @throws KcoreError with every problem at its place */
  fill(scope: Scope): Sh;
}

/** @throws KcoreError EXPRESSION_SYNTAX, MODULE_INVALID at the expressions that cannot stand where they do */
export function shellTemplate(scalar: SourceScalar): ShellTemplate {
  const template = templateOfScalar(scalar);
  const problems = misplaced(template.program, template, new QuotingScanner());
  if (problems.length > 0) throw new KcoreError(problems);
  return {
    fill: (scope) => {
      const output = new Words();
      new Interpreter(template).into(output, scope);
      return output.sh();
    },
  };
}

const hints: Readonly<Record<Exclude<Quoting, "word">, string>> = {
  "in quotes": 'end the quotes before it: "a b"{{args.x}}',
  "in back quotes": "write $(…) instead of back quotes",
  "in an arithmetic expansion": "set a variable to it first: n={{args.n}}",
  "in a here-document": "print it: printf '%s\\n' {{args.x}}",
  "in a comment": "leave it out: what has two lines would end the comment",
  "right behind a backslash": "put the backslash into quotes: '\\\\'{{args.x}}",
  "right behind a $": "put the $ into quotes: '$'{{args.x}}",
  "behind $'": "shells read $'…' differently: write printf",
  'behind a single quote in "${"':
    'shells read it differently: write \\" instead, or set a variable to {{args.x}} before',
  "behind a case in $(": "set a variable to it before: x={{args.x}}, or write the case outside of $(…)",
};

/** In the order of the text, through all branches. */
function misplaced(program: Program, template: Template, scanner: QuotingScanner): Problem[] {
  return program.body.flatMap((statement): Problem[] => {
    if (statement.type === "ContentStatement") scanner.feed(statement.value);
    if (statement.type === "BlockStatement")
      return [statement.program, statement.inverse].flatMap((inner) =>
        inner ? misplacedWithin(inner, statement.loc, template, scanner) : [],
      );
    if (statement.type !== "MustacheStatement") return [];
    const { state } = scanner;
    scanner.feedWord();
    if (state === "word") return [];
    return [
      {
        code: "MODULE_INVALID",
        message: `this expression stands ${state}, where its own quotes mean nothing`,
        at: template.place(statement.loc),
        hint: hints[state],
      },
    ];
  });
}

/** A branch leaves open what was open before it, and nothing else: whether it is taken must not decide what is quoted behind it. */
function misplacedWithin(branch: Program, loc: Loc, template: Template, scanner: QuotingScanner): Problem[] {
  const before = scanner.context;
  const problems = misplaced(branch, template, scanner);
  if (scanner.context === before) return problems;
  const message = "this block opens quotes, or a here-document, that it does not close";
  return [
    ...problems,
    { code: "MODULE_INVALID", message, at: template.place(loc), hint: "put the whole word into the block" },
  ];
}

class Words implements Sink {
  readonly #parts: Sh[] = [];

  text(part: string): void {
    // The text of the operator's module, as a command of the operator's would be.
    this.#parts.push(rawSh(part));
  }

  value(value: unknown): void {
    const values: readonly unknown[] = Array.isArray(value) ? value : [value];
    this.#parts.push(sh`${values.map(wordOf)}`);
  }

  sh(): Sh {
    return this.#parts.reduce((all, part) => sh`${all}${part}`, sh``);
  }
}

function wordOf(value: unknown): ShWord {
  if (typeof value === "string" || typeof value === "number" || value instanceof Secret || value instanceof Blob)
    return value;
  if (typeof value === "boolean") return String(value);
  throw new Fault(`${describeValue(value)} cannot be a word of a shell text`, {
    hint: value === null ? "{{#if args.x}} … {{/if}} leaves it out" : "use #each, join or json",
  });
}
