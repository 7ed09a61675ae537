import type { ErrorCode } from "#errors/codes.ts";

/**
 * A step of one module that test/lab/catalogue tries: in a dry run, applied twice, mended after another program changed it, and refused.
 * Its sh texts run on the node as root, and must exit 0.
 */
export interface Sample {
  /** The step's id: its module, and a further word if the module has several samples. */
  readonly id: string;
  readonly module: string;
  /** The step's arguments, as a state has them. */
  readonly args: Readonly<Record<string, unknown>>;
  /** The step only prepares later samples of other modules. */
  readonly helps?: true;
  /** The outcome on a BusyBox node, if the sample is tried there. */
  readonly busybox?: "converges" | { readonly refuses: ErrorCode; readonly forWantOf: string };
  /** A sh text that runs on the node before the first probe. */
  readonly before?: string;
  /** Other keys of the step, such as `creates`. */
  readonly keys?: Readonly<Record<string, unknown>>;
  /** The step is an assertion, a wait or a check, which may find all in order on a new node. */
  readonly isCheck?: true;
  /** A change by another program (`by`), and the facts that a dry run then finds different. Absent if the step cannot drift. */
  readonly drift?: { readonly by: string; readonly finds: Readonly<Record<string, string | RegExp>> };
  /** Arguments that the module refuses, and the code; `before` makes the situation, `after` removes it. */
  readonly refusal?: {
    readonly args: Readonly<Record<string, unknown>>;
    readonly code: ErrorCode;
    readonly before?: string;
    readonly after?: string;
  };
}
