import type { RefusalBody } from "#api/controller-schemas.ts";
import type { ErrorCode } from "#errors/codes.ts";

/** The error of a request that the controller refuses; the client gets all its fields. */
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

  toRefusal(): RefusalBody {
    const { code, message, hint, detail } = this;
    return { code, message, hint, detail };
  }
}

/** The hint for bringing the machine of a removed node back. */
export const bringBackHint =
  "kcore roster adopt NODE gives its machine a new id and keeps the data on its disks; then deploy it";

/** The refusal of a revoked key. Its hint deletes the key, since a deployment keeps a key that it finds. `isRemoved`: the node was removed. */
export function revokedKey(
  status: 403 | 409,
  { role, id }: Readonly<Record<"role" | "id", string>>,
  isRemoved = false,
): Refused {
  const hint = isRemoved
    ? bringBackHint
    : role === "node" || role === "controller"
      ? `remove ${role === "node" ? "/etc/kcore/certs" : "/etc/kcore/controller"}/${role}.key on its machine and deploy it again: a new key is made there`
      : "make a new key";
  return new Refused(status, "KEY_REVOKED", `the key of ${role} ${id} was revoked, and is never used again`, hint);
}

/** A temporary refusal; its answer has the seconds until the next attempt (Retry-After, RFC 9110, 10.2.3). */
export class Busy extends Refused {
  readonly retryAfterSecs: number;

  constructor(status: 429 | 503, message: string, retryAfterSecs = 1) {
    super(status, "API_BUSY", message, `ask again in ${retryAfterSecs} s, or another controller: kcore -s HOST`);
    this.retryAfterSecs = retryAfterSecs;
  }
}
