import { KcoreError, type Problem } from "#errors/problem.ts";
import type { Program } from "#engine/expressions/ast.ts";
import { type Template, templateOfScalar } from "#engine/expressions/expression.ts";
import { Fault } from "#engine/expressions/fault.ts";
import { Interpreter, type Sink } from "#engine/expressions/interpret.ts";
import type { Scope } from "#engine/expressions/scope.ts";
import { Blob } from "#engine/step/blob.ts";
import { Secret } from "#engine/step/secret.ts";
import { rawSh, sh, type Sh, type ShWord } from "#engine/step/sh.ts";
import { describeValue, type SourceScalar } from "#engine/yaml/node.ts";
import { QuotingScanner } from "./quoting.ts";

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

/** In the order of the text, through all branches. */
function misplaced(program: Program, template: Template, scanner: QuotingScanner): Problem[] {
  return program.body.flatMap((statement): Problem[] => {
    if (statement.type === "ContentStatement") scanner.feed(statement.value);
    if (statement.type === "BlockStatement")
      return [statement.program, statement.inverse].flatMap((inner) =>
        inner ? misplaced(inner, template, scanner) : [],
      );
    if (statement.type !== "MustacheStatement") return [];
    const { state } = scanner;
    scanner.feedWord();
    if (state === "word" || state === "in a comment") return [];
    return [
      {
        code: "MODULE_INVALID",
        message: `this expression stands ${state}, and brings quotes of its own`,
        at: template.place(statement.loc),
        hint:
          state === "in quotes" ? 'end the quotes before it: "a b"{{args.x}}' : "print it: printf '%s\\n' {{args.x}}",
      },
    ];
  });
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
