import type { ErrorCode } from "#errors/codes.ts";

/**
 * A step of one module for the lab (test/lab/catalogue): foreseen by a dry run, applied twice, changed by another program, mended, and
 * refused. Texts of sh run on the node as root, and end 0.
 */
export interface Sample {
  /** The step's id: its module, and a further word if the module has several samples. */
  readonly id: string;
  readonly module: string;
  /** The step's arguments, as a state has them. */
  readonly args: Readonly<Record<string, unknown>>;
  /** The step prepares later samples, and belongs to another module. */
  readonly helps?: true;
  /** The outcome on a BusyBox node, if the sample is tried there. */
  readonly busybox?: "converges" | { readonly refuses: ErrorCode; readonly forWantOf: string };
  /** Runs on the node before the first probe. */
  readonly before?: string;
  /** Other keys of the step, such as `creates`. */
  readonly keys?: Readonly<Record<string, unknown>>;
  /** An assertion, a wait or a check: the step may find all in order on a new node. */
  readonly isCheck?: true;
  /** A later change by another program, and the facts that a dry run then finds different. Absent if the step cannot drift. */
  readonly drift?: { readonly by: string; readonly finds: Readonly<Record<string, string | RegExp>> };
  /** Arguments that the module refuses, and with which code; `before` makes the situation, `after` removes it. */
  readonly refusal?: {
    readonly args: Readonly<Record<string, unknown>>;
    readonly code: ErrorCode;
    readonly before?: string;
    readonly after?: string;
  };
}
