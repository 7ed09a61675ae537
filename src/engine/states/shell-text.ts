import type { Problem } from "#errors/problem.ts";
import type { Program, Statement } from "#engine/expressions/ast.ts";
import { mayHoldExpression, type Template, templateOfScalar, wholeExpression } from "#engine/expressions/expression.ts";
import { isQuoted, unquoted } from "#engine/expressions/shell-values.ts";
import { defined } from "#optional/defined.ts";
import type { SourceScalar } from "#engine/yaml/node.ts";

/**
 * In a text that a shell will read, a value put in as it is could become syntax. So every expression inside such a
 * text is `{{shell …}}`; a scalar that is one whole expression is a command of its own and stands as it is.
 */
export function unquotedIn(scalar: SourceScalar): Problem[] {
  if (typeof scalar.value !== "string" || !mayHoldExpression(scalar.value)) return [];
  const template = templateOfScalar(scalar);
  return wholeExpression(template) === undefined ? unquotedInProgram(template.program, template) : [];
}

function unquotedInProgram(program: Program, template: Template): Problem[] {
  return program.body.flatMap((statement) => unquotedInStatement(statement, template));
}

function unquotedInStatement(statement: Statement, template: Template): Problem[] {
  if (statement.type === "BlockStatement")
    return [statement.program, statement.inverse].flatMap((program) =>
      program === undefined ? [] : unquotedInProgram(program, template),
    );
  if (statement.type !== "MustacheStatement") return [];
  if (isQuoted(statement)) return [];
  const { code, message, hint } = unquoted(statement);
  return [{ code, message, at: template.place(statement.loc), ...defined({ hint }) }];
}
