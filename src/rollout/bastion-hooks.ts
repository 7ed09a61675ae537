import { isHook } from "./hooks.ts";
import type { UpdateSpec } from "./spec.ts";

/** A state for a node, or a command on the bastion, that a drain or a gate of an update names. */
export interface BastionHook {
  /** The name in a rollout's requests: `drain`, `gate NAME` or `undrain`. */
  readonly name: string;
  readonly kind: "state" | "command";
  readonly state: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly command: string;
  readonly limitSeconds: number;
  /**
   * Seconds by which the hook ends before the controller's limit, so that the answer with its output arrives in time.
   */
  readonly spareSeconds: number;
  readonly isGate: boolean;
}

/** Seconds that suffice to end a hook and to answer; a short hook keeps only a part of its time. */
const longestSpare = 5;
const spareShare = 0.2;

/** All hooks of an update that the bastion carries out. */
export function bastionHooks({ drain, healthGates }: UpdateSpec): readonly BastionHook[] {
  const limitSeconds = drain.timeoutSeconds;
  const spareSeconds = Math.min(longestSpare, limitSeconds * spareShare);
  const drains = drain.enabled ? [{ ...drain, name: "drain", limitSeconds, spareSeconds, isGate: false }] : [];
  const gates = healthGates.map((gate) => ({
    ...gate,
    name: `gate ${gate.name}`,
    limitSeconds: gate.withinSeconds,
    spareSeconds: 0,
    isGate: true,
  }));
  const undrains =
    drain.enabled && drain.after
      ? [{ ...drain.after, name: "undrain", limitSeconds, spareSeconds: 0, isGate: false }]
      : [];
  return [...drains, ...gates, ...undrains]
    .filter(isHook)
    .map(({ name, state = "", params = {}, command = "", ...rest }) => ({
      name,
      kind: state === "" ? "command" : "state",
      state,
      params,
      command,
      limitSeconds: rest.limitSeconds,
      spareSeconds: rest.spareSeconds,
      isGate: rest.isGate,
    }));
}
