import { isHook } from "#rollout/hooks.ts";
import type { UpdateSpec } from "#rollout/spec.ts";

/** What the bastion does for a node: a state that is applied to it, or a command here. */
export interface Hook {
  readonly name: string;
  readonly state?: string | undefined;
  readonly params?: Readonly<Record<string, unknown>> | undefined;
  readonly command?: string | undefined;
  readonly limitSeconds: number;
  /** So much before that it is ended and answered for: a controller whose own time is over knows nothing of what it printed. */
  readonly spareSeconds: number;
  /** It may be tried until its time is over: it asks whether something holds. */
  readonly isGate: boolean;
}

/** Enough to end it, and to answer; of a short time a part. */
const longestSpare = 5;
const spareShare = 0.2;

/** All that an update asks of the bastion, by the names that its rollout uses. */
export function hooksOf({ drain, healthGates }: UpdateSpec): ReadonlyMap<string, Hook> {
  const limitSeconds = drain.timeoutSeconds;
  const spareSeconds = Math.min(longestSpare, limitSeconds * spareShare);
  const all: readonly Hook[] = [
    ...(drain.enabled ? [{ ...drain, name: "drain", limitSeconds, spareSeconds, isGate: false }] : []),
    ...(drain.enabled && drain.after
      ? [{ ...drain.after, name: "undrain", limitSeconds, spareSeconds: 0, isGate: false }]
      : []),
    ...healthGates.map((gate) => ({
      ...gate,
      name: `gate ${gate.name}`,
      limitSeconds: gate.withinSeconds,
      spareSeconds: 0,
      isGate: true,
    })),
  ];
  return new Map(all.filter(isHook).map((hook) => [hook.name, hook]));
}
