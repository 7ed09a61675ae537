import type { FailureRecord, FailureKind } from "#rollout/records.ts";

/** Most characters of a failure in a report. */
const longest = 2_000;

/** The failure of a step, which the report carries; any other error is a bug, or a disk that fails. */
export class UpdateFailure extends Error {
  readonly kind: FailureKind;

  constructor(kind: FailureKind, message: string, options?: ErrorOptions) {
    super(clip(message), options);
    this.name = "UpdateFailure";
    this.kind = kind;
  }

  get failure(): FailureRecord {
    return { kind: this.kind, message: this.message };
  }
}

/** Keeps the beginning of a long text, which names the program, and the end, which has the reason. */
function clip(text: string): string {
  if (text.length <= longest) return text;
  const half = longest / 2 - 2;
  return `${text.slice(0, half)} … ${text.slice(-half)}`;
}
