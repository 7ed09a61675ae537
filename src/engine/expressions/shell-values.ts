import { printed } from "./helper.ts";
import { isPlainWord } from "#engine/step/quote.ts";
import { Secret } from "#engine/step/secret.ts";
import type { SourceNode, SourceScalar } from "#engine/yaml/node.ts";
import type { Call } from "./ast.ts";
import { mayHoldExpression, templateOfScalar, wholeExpression } from "./expression.ts";
import { Fault } from "./fault.ts";
import { Interpreter, type Sink } from "./interpret.ts";
import type { Scope } from "./scope.ts";

/**
 * Refuses arguments that a shell reads and into which an expression puts what the shell could take for syntax: more or less than one
 * plain word, unless `{{shell …}}` quotes it. A text that is one whole expression is a command of its own.
 * @throws KcoreError EXPRESSION_UNQUOTED, and what {@link evaluate} throws
 */
export function refuseSyntax(args: SourceNode, keys: readonly string[], scope: Scope): void {
  if (args.kind !== "map") return;
  for (const key of keys) {
    const text = args.get(key);
    if (text?.kind === "scalar") refuseIn(text, scope);
  }
}

function refuseIn(scalar: SourceScalar, scope: Scope): void {
  if (typeof scalar.value !== "string" || !mayHoldExpression(scalar.value)) return;
  const template = templateOfScalar(scalar);
  if (wholeExpression(template) === undefined) new Interpreter(template).into(plainWords, scope);
}

/** Whether an expression quotes its value itself. */
export function isQuoted({ path, params }: Call): boolean {
  // Without arguments it is no helper but a name, as that of a block's parameter.
  return path.type === "PathExpression" && path.original === "shell" && params.length > 0;
}

/** What is wrong with an expression whose value stands as it is in a text that a shell reads. */
export function unquoted({ path, params }: Call): Fault {
  const name = path.type === "PathExpression" ? path.original : "…";
  return new Fault("this value would stand unquoted in a shell text", {
    code: "EXPRESSION_UNQUOTED",
    hint: `write {{shell ${params.length > 0 ? `(${name} …)` : name}}}`,
  });
}

const plainWords: Sink = {
  text: () => undefined,
  value: (value, call) => {
    const text = value instanceof Secret ? value.reveal() : printed(value);
    if (text !== undefined && !isPlainWord(text) && !isQuoted(call)) throw unquoted(call);
  },
};
