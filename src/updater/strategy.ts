import { z } from "zod";
import { orderSteps } from "#rollout/order.ts";
import { Report, type FailureRecord } from "#rollout/records.ts";

/** The version that a node runs, or ran. */
export const NodeVersion = Report.shape.present;
export type NodeVersion = z.infer<typeof NodeVersion>;

/** The version that a node runs; `lasting`: the boot default, if it differs. */
export const BootState = NodeVersion.extend({ lasting: NodeVersion.optional() });
export type BootState = z.infer<typeof BootState>;

/** Whether two states run the same version and have the same boot default. */
export function isSameState(one: BootState, other: BootState): boolean {
  return one.id === other.id && (one.lasting ?? one).id === (other.lasting ?? other).id;
}

/** The result of a preparation. */
export const Preparation = Report.pick({ targetGeneration: true, needsReboot: true, rebootReasons: true });
export type Preparation = z.infer<typeof Preparation>;

/** The steps of an order that change the node. */
export const UpdateStep = z.enum(orderSteps).exclude(["fence", "hold"]);
export type UpdateStep = z.infer<typeof UpdateStep>;

/** The kind of an update's target: kcore's runtime, or a NixOS system. */
export const TargetKind = z.enum(["runtime", "system"]);
export type TargetKind = z.infer<typeof TargetKind>;

/** A condition that does not hold yet. `detail` explains it, and is called only at the deadline. */
export interface MissingCondition extends FailureRecord {
  readonly detail?: () => Promise<string>;
}

/**
 * Brings one kind of target into use. Each function throws UpdateFailure, and may be interrupted anywhere: its next call
 * continues.
 */
export interface UpdateStrategy {
  /** The version that the node runs when the update has held. */
  readonly target: NodeVersion;
  /** Whether the store still has a former version. */
  readonly isStored: (ran: NodeVersion) => Promise<boolean>;
  /** Fetches the bundle that `prepare` needs; absent if `prepare` needs none. @throws the signal's reason, too */
  readonly fetch?: (msLeft: () => number, signal: AbortSignal) => Promise<void>;
  /** Imports or builds the target, without bringing it into use. */
  readonly prepare: (msLeft: () => number) => Promise<Preparation>;
  /** Brings the target into use, or makes it the boot default. `hasBooted`: the machine has been booted for it. */
  readonly activate: (msLeft: () => number, hasBooted: boolean) => Promise<{ readonly needsBoot: boolean }>;
  /** The time of the agent's last heartbeat, so that a later heartbeat is recognised after an activation. */
  readonly mark: () => Promise<string>;
  /** The first condition without which a version does not run steadily. With `mark`, one is that the agent has reached a controller since. */
  readonly missing: (running: BootState, mark?: string) => Promise<MissingCondition | undefined>;
  /** Makes a version that holds the boot default, or the runtime of the updater itself. */
  readonly commit: (held: NodeVersion) => Promise<void>;
  /** Takes the node back to a version, with the boot default that it had. */
  readonly rollBack: (to: BootState, msLeft: () => number) => Promise<{ readonly needsBoot: boolean }>;
}
