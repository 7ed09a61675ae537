import type { Failure } from "#rollout/records.ts";
import type { Prepared, Present, Standing } from "./journal.ts";

/** A condition that does not hold yet; `detail` is asked for when its time is over. */
export interface Missing extends Failure {
  readonly detail?: () => Promise<string>;
}

/**
 * How a kind of target is brought into use. Each function may be called again after it was cut off anywhere, and then does the rest.
 * They throw UpdateFailure. `left`: ms that are left.
 */
export interface UpdateStrategy {
  /** The version that the node runs when the update has held. */
  readonly target: Present;
  /** Whether a version that ran once can be run again. */
  readonly isThere: (ran: Present) => Promise<boolean>;
  /** Fetches the bundle that `prepare` needs; absent: it needs none. @throws the signal's reason, too */
  readonly fetch?: (left: () => number, signal: AbortSignal) => Promise<void>;
  /** Makes the target ready, without anything of it in use. */
  readonly prepare: (left: () => number) => Promise<Prepared>;
  /** Brings the target into use, or makes it the boot default. `hasBooted`: the machine has been booted for it. */
  readonly activate: (left: () => number, hasBooted: boolean) => Promise<{ readonly needsBoot: boolean }>;
  /** The agent's last heartbeat: made before an activation, it tells a later heartbeat from an earlier one. */
  readonly mark: () => Promise<string>;
  /** The first condition that keeps a version from running steadily; with `mark`, the agent's contact with a controller counts, too. */
  readonly missing: (running: Standing, mark?: string) => Promise<Missing | undefined>;
  /** Makes a version that held the one that carries out later updates. */
  readonly commit: (held: Present) => Promise<void>;
  /** Takes the node back to a version, with the boot default that it had. */
  readonly rollBack: (to: Standing, left: () => number) => Promise<{ readonly needsBoot: boolean }>;
}
