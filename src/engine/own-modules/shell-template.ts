import { KcoreError, type Problem } from "#errors/problem.ts";
import type { Program } from "#engine/expressions/ast.ts";
import { type Template, templateOfScalar } from "#engine/expressions/expression.ts";
import { Fault } from "#engine/expressions/fault.ts";
import { Interpreter } from "#engine/expressions/interpret.ts";
import type { Sink } from "#engine/expressions/text-output.ts";
import type { Scope } from "#engine/expressions/scope.ts";
import { misplacedExpressions } from "#engine/expressions/shell-values.ts";
import { Blob } from "#engine/step/blob.ts";
import { Secret } from "#engine/step/secret.ts";
import { rawSh, sh, type Sh, type ShWord } from "#engine/step/sh.ts";
import { describeValue, type SourceScalar } from "#engine/yaml/node.ts";

/**
 * A text of sh whose expressions are words: each value is quoted, a list becomes several words, a secret or a file is sent apart. So no
 * value can become syntax. An expression within quotes is refused when the text is read, since the value's quotes would end them.
 */
export interface ShellTemplate {
  /** The text with its expressions' values as words. @throws KcoreError with every problem at its place */
  fill(scope: Scope): Sh;
}

/**
 * `code`: the names of arguments that may be code for a shell.
 * @throws KcoreError EXPRESSION_SYNTAX, MODULE_INVALID at each misplaced expression
 */
export function shellTemplate(scalar: SourceScalar, code: ReadonlySet<string>): ShellTemplate {
  const template = templateOfScalar(scalar);
  const problems = [
    ...misplacedExpressions(template, { quotes: () => true, code: "MODULE_INVALID" }),
    ...undeclaredCode(template.program, template, code),
  ];
  if (problems.length > 0) throw new KcoreError(problems);
  return {
    fill: (scope) => {
      const output = new Words();
      new Interpreter(template).into(output, scope);
      return output.sh();
    },
  };
}

/** Matches text after which another shell reads the next word as code. */
const givesCode =
  /(?:(?:^|[\s;&|(/])(?:(?:a|ba|da|k|mk|z)?sh|su|runuser)\s(?:[^\n;&|]*\s)?-[A-Za-z]*c[A-Za-z]*(?:\s+[-+][\w-]*)*|(?:^|[\s;&|(])(?:eval|on_revert))\s+$/;

/** Problems of expressions that another shell would read as code; arguments with `format: shell` may be code. */
function undeclaredCode(program: Program, template: Template, code: ReadonlySet<string>): Problem[] {
  return program.body.flatMap((statement, index): Problem[] => {
    if (statement.type === "BlockStatement")
      return [statement.program, statement.inverse].flatMap((inner) =>
        inner ? undeclaredCode(inner, template, code) : [],
      );
    const before = program.body[index - 1];
    if (statement.type !== "MustacheStatement" || before?.type !== "ContentStatement") return [];
    const { path, params } = statement;
    const [root, name = ""] = path.type === "PathExpression" ? path.parts : [];
    if (!givesCode.test(before.value) || (params.length === 0 && root === "args" && code.has(name))) return [];
    return [
      {
        code: "MODULE_INVALID",
        message: "another shell would read this value as code",
        at: template.place(statement.loc),
        hint: "give it as a word: sh -c 'echo \"$1\"' sh {{args.x}}; an argument that is code has format: shell",
      },
    ];
  });
}

class Words implements Sink {
  readonly #parts: Sh[] = [];

  text(part: string): void {
    // A literal part is code of the operator's own module.
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
