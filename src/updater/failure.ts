import type { FailureRecord, FailureKind } from "#rollout/records.ts";

/** Most characters of a failure's message, because a report allows no more. */
const longest = 2_000;

/** The failure of a step, which the node reports. Any other error is a bug or a failing disk. */
export class UpdateFailure extends Error {
  readonly kind: FailureKind;

  constructor(kind: FailureKind, message: string, options?: ErrorOptions) {
    super(shorten(message), options);
    this.name = "UpdateFailure";
    this.kind = kind;
  }

  get failure(): FailureRecord {
    return { kind: this.kind, message: this.message };
  }
}

/** Keeps the beginning of a long text, which names the program, and the end, which has the reason. */
function shorten(text: string): string {
  if (text.length <= longest) return text;
  const half = longest / 2 - 2;
  return `${text.slice(0, half)} … ${text.slice(-half)}`;
}
