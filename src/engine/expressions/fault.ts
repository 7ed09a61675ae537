import type { ErrorCode } from "#errors/codes.ts";

/** Why an expression failed, before its place is known. */
export class Fault extends Error {
  readonly code: ErrorCode;
  readonly hint: string | undefined;
  /** Index of the helper's argument that is wrong. */
  readonly argument: number | undefined;

  constructor(
    message: string,
    {
      code = "EXPRESSION_TYPE",
      hint,
      argument,
    }: { readonly code?: ErrorCode; readonly hint?: string | undefined; readonly argument?: number } = {},
  ) {
    super(message);
    this.name = "Fault";
    this.code = code;
    this.hint = hint;
    this.argument = argument;
  }
}
