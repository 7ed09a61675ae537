import type { Failure, FailureKind } from "#rollout/records.ts";

/** The most that a report carries of why it failed. */
const longest = 2_000;

/** The failure of a step, which the report carries; any other error is a bug, or a disk that fails. */
export class UpdateFailure extends Error {
  readonly kind: FailureKind;

  constructor(kind: FailureKind, message: string, options?: ErrorOptions) {
    super(clip(message), options);
    this.name = "UpdateFailure";
    this.kind = kind;
  }

  get failure(): Failure {
    return { kind: this.kind, message: this.message };
  }
}

/** Keeps of a long text the beginning, which names the program, and the end, which has the reason. */
function clip(text: string): string {
  if (text.length <= longest) return text;
  const half = longest / 2 - 2;
  return `${text.slice(0, half)} … ${text.slice(-half)}`;
}
