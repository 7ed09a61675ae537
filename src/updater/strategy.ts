import { z } from "zod";
import { orderSteps } from "#rollout/order.ts";
import { Report, type FailureRecord } from "#rollout/records.ts";

/** The version that a node runs, or ran. */
export const Present = Report.shape.present;
export type Present = z.infer<typeof Present>;

/** The version that a node runs, with the boot default if it differs. */
export const BootState = Present.extend({ lasting: Present.optional() });
export type BootState = z.infer<typeof BootState>;

export function isSameState(one: BootState, other: BootState): boolean {
  return one.id === other.id && (one.lasting ?? one).id === (other.lasting ?? other).id;
}

/** The result of a preparation. */
export const Prepared = Report.pick({ targetGeneration: true, needsReboot: true, rebootReasons: true });
export type Prepared = z.infer<typeof Prepared>;

export const Step = z.enum(orderSteps).exclude(["fence", "hold"]);
export type Step = z.infer<typeof Step>;

/** kcore's runtime, or a NixOS system. */
export const Brings = z.enum(["runtime", "system"]);
export type Brings = z.infer<typeof Brings>;

/** A condition that does not hold yet; `detail` is called if it still does not at the deadline. */
export interface Missing extends FailureRecord {
  readonly detail?: () => Promise<string>;
}

/**
 * The steps that bring one kind of target into use. Each function may be interrupted anywhere, and continues when it is
 * called again. They throw UpdateFailure. `left`: ms left.
 */
export interface UpdateStrategy {
  /** The version that the node runs when the update has held. */
  readonly target: Present;
  /** Whether a former version can still run. */
  readonly isThere: (ran: Present) => Promise<boolean>;
  /** Fetches the bundle that `prepare` needs; absent: it needs none. @throws the signal's reason, too */
  readonly fetch?: (left: () => number, signal: AbortSignal) => Promise<void>;
  /** Fetches or builds the target; nothing of it comes into use. */
  readonly prepare: (left: () => number) => Promise<Prepared>;
  /** Brings the target into use, or makes it the boot default. `hasBooted`: the machine has been booted for it. */
  readonly activate: (left: () => number, hasBooted: boolean) => Promise<{ readonly needsBoot: boolean }>;
  /** The agent's last heartbeat, to tell later ones from it after an activation. */
  readonly mark: () => Promise<string>;
  /** The first condition that keeps a version from running steadily. With `mark`, the agent must also have reached a controller since. */
  readonly missing: (running: BootState, mark?: string) => Promise<Missing | undefined>;
  /** Keeps a version that held: as the boot default, or as the runtime of the updater itself. */
  readonly commit: (held: Present) => Promise<void>;
  /** Takes the node back to a version, with the boot default that it had. */
  readonly rollBack: (to: BootState, left: () => number) => Promise<{ readonly needsBoot: boolean }>;
}
