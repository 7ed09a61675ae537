import type { Failure } from "#rollout/records.ts";
import type { Prepared, Present, Standing } from "./journal.ts";

/** What has still to come; `detail` is asked for when it does not come in time. */
export interface Missing extends Failure {
  readonly detail?: () => Promise<string>;
}

/**
 * How a kind of target is brought into use. Each of these may be called again after it was cut off anywhere, and then does what is
 * still to be done. They throw UpdateFailure. `left`: ms that are left.
 */
export interface UpdateWay {
  /** What the node runs when the update has held. */
  readonly target: Present;
  /** Without a generation: the next boot begins with another one. */
  readonly present: () => Promise<Standing>;
  /** Whether what ran once can be run again. */
  readonly isThere: (ran: Present) => Promise<boolean>;
  /** Makes it ready, without anything of it in use. */
  readonly prepare: (left: () => number) => Promise<Prepared>;
  /** Brings it into use, or makes it what the next boot begins with. `hasBooted`: the machine has been booted for that. */
  readonly activate: (left: () => number, hasBooted: boolean) => Promise<{ readonly needsBoot: boolean }>;
  /** What the agent said last: made before an activation, it tells a later word from an earlier one. */
  readonly mark: () => Promise<string>;
  /** What is missing until this runs and is steady; with `mark`, until it has spoken with a controller, too. undefined: nothing. */
  readonly missing: (running: Standing, mark?: string) => Promise<Missing | undefined>;
  /** From now on it is what updates this node, too. */
  readonly commit: (held: Present) => Promise<void>;
  /** What lasted beside it lasts again, too. */
  readonly rollBack: (to: Standing, left: () => number) => Promise<{ readonly needsBoot: boolean }>;
}
