import type { Refusal } from "#api/controller-schemas.ts";
import type { ErrorCode } from "#errors/codes.ts";

/** A request that is answered with a refusal; the message goes to the client. */
export class Refused extends Error {
  readonly status: number;
  readonly code: ErrorCode;
  readonly hint: string | undefined;
  /** More lines: a list of candidates. */
  readonly detail: string | undefined;

  constructor(status: number, code: ErrorCode, message: string, hint?: string, detail?: string) {
    super(message);
    this.status = status;
    this.code = code;
    this.hint = hint;
    this.detail = detail;
  }

  toRefusal(): Refusal {
    const { code, message, hint, detail } = this;
    return { code, message, hint, detail };
  }
}

/** The hint for the machine of a removed node that shall return. */
export const comesBack =
  "kcore roster adopt NODE gives its machine a new id and keeps the data on its disks; then deploy it";

/** A deployment keeps a key that it finds, so a revoked key must be deleted first. `isRemoved`: the node was removed, too. */
export function revokedKey(
  status: 403 | 409,
  { role, id }: Readonly<Record<"role" | "id", string>>,
  isRemoved = false,
): Refused {
  const hint = isRemoved
    ? comesBack
    : role === "node" || role === "controller"
      ? `remove ${role === "node" ? "/etc/kcore/certs" : "/etc/kcore/controller"}/${role}.key on its machine and deploy it again: a new key is made there`
      : "make a new key";
  return new Refused(status, "KEY_REVOKED", `the key of ${role} ${id} was revoked, and is never used again`, hint);
}

/** A refusal that a later attempt may not meet; its answer says after how long (RFC 9110, 10.2.3). */
export class Busy extends Refused {
  readonly retryAfterSecs: number;

  constructor(status: 429 | 503, message: string, retryAfterSecs = 1) {
    super(status, "API_BUSY", message, `ask again in ${retryAfterSecs} s, or another controller: kcore -s HOST`);
    this.retryAfterSecs = retryAfterSecs;
  }
}
