import type { Refusal } from "#api/schemas.ts";
import type { ErrorCode } from "#errors/codes.ts";

/** A request that is answered with a refusal; the message goes to the client. */
export class Refused extends Error {
  readonly status: number;
  readonly code: ErrorCode;
  readonly hint: string | undefined;

  constructor(status: number, code: ErrorCode, message: string, hint?: string) {
    super(message);
    this.status = status;
    this.code = code;
    this.hint = hint;
  }

  toRefusal(): Refusal {
    return { code: this.code, message: this.message, ...(this.hint === undefined ? {} : { hint: this.hint }) };
  }
}
