import type { ErrorCode } from "#errors/codes.ts";

/**
 * A step of one module as the lab tries it (test/lab/catalogue): foreseen by a dry run, applied twice, changed by somebody else, mended; and
 * what the module refuses. Texts of sh run on the node as root, and end 0.
 */
export interface Sample {
  /** The step's id: its module, and a word more where there are several. */
  readonly id: string;
  readonly module: string;
  /** Its arguments, as a state has them. */
  readonly args: Readonly<Record<string, unknown>>;
  /** It makes what samples behind it need, and is none of its module. */
  readonly helps?: true;
  /** What becomes of it on a BusyBox node, where it is tried there. */
  readonly busybox?: "converges" | { readonly refuses: ErrorCode; readonly forWantOf: string };
  /** Done on the node before the first look. */
  readonly before?: string;
  /** Other keys of the step, such as `creates`. */
  readonly keys?: Readonly<Record<string, unknown>>;
  /** It may find all in order on a new node: an assertion, a wait, a check. */
  readonly isCheck?: true;
  /** What somebody does afterwards, and the facts of the step that a dry run then finds other than wanted; absent where it cannot drift. */
  readonly drift?: { readonly by: string; readonly finds: Readonly<Record<string, string | RegExp>> };
  /** What it refuses, and with which code; `before` makes the situation, `after` takes it away. */
  readonly refusal?: {
    readonly args: Readonly<Record<string, unknown>>;
    readonly code: ErrorCode;
    readonly before?: string;
    readonly after?: string;
  };
}
