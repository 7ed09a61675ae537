import type { Failure, FailureKind } from "#rollout/records.ts";

/** The most that a report carries of why it failed. */
const longest = 2_000;

/** What a node's owner is told when a step did not come to its end; anything else thrown is a bug, or a disk that fails. */
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

/** Of a long text the beginning, which says what, and the end, which says why. */
function clip(text: string): string {
  if (text.length <= longest) return text;
  const half = longest / 2 - 2;
  return `${text.slice(0, half)} … ${text.slice(-half)}`;
}
