import { UnopenedValue } from "#engine/step/encrypted-value.ts";
import { KcoreError, type Problem } from "#errors/problem.ts";

/** A thrown error as the one problem that an event can hold; further problems become its detail. */
export function problemOf(error: unknown): Problem {
  if (error instanceof UnopenedValue) return error.asProblem();
  if (!(error instanceof KcoreError))
    return {
      code: "INTERNAL",
      message: `a bug in kcore: ${error instanceof Error ? error.message : String(error)}`,
      hint: "please report it together with the detail",
      ...(error instanceof Error && error.stack !== undefined && { detail: error.stack }),
    };
  const [first, ...others] = error.problems;
  if (first === undefined) return { code: "INTERNAL", message: "an error without a problem" };
  if (others.length === 0) return first;
  const lines = others.map(({ at, message }) => (at ? `${at.file}:${at.line}:${at.column}  ${message}` : message));
  return { ...first, detail: [...(first.detail === undefined ? [] : [first.detail]), ...lines].join("\n") };
}

/** Whether a thrown error is a bug of kcore, not a problem that an operator can act on. */
export function isBug(error: unknown): boolean {
  return !(error instanceof KcoreError || error instanceof UnopenedValue);
}
