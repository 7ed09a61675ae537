import { bastionHooks } from "./hooks.ts";
import { divideIntoWaves } from "./selection.ts";
import { updateKindOf, targetIdOf, weekdays, type Bundle, type UpdateSpec } from "./spec.ts";
import type { RolloutNode } from "./rollout-input.ts";

/** An update that the bastion carries out itself, as a run. */
export interface SshUpdate {
  readonly name: string;
  readonly spec: UpdateSpec;
  /** Absent for NixOS systems, which nodes build themselves. */
  readonly bundle: Bundle | undefined;
  /** The nodes that the selector selects, in the roster's order. */
  readonly selected: readonly RolloutNode[];
  /** Whether the run takes the update back. */
  readonly isBack: boolean;
}

/** The parameters of orchestrate/update.yaml, or of update_rollback.yaml, with the waves that controllers would make. */
export function sshParams({ name, spec, bundle, selected, isBack }: SshUpdate): Readonly<Record<string, unknown>> {
  const { waves: groups, canaries } = divideIntoWaves(selected, spec, "");
  const hostnamesOf = (ids: readonly string[]): string =>
    selected
      .filter(({ id }) => ids.includes(id))
      .map(({ hostname }) => hostname)
      .join(",");
  const waves = groups.map(hostnamesOf);
  const hooks = bastionHooks(spec).map((hook) => ({ ...hook, gate: hook.name.slice("gate ".length) }));
  const common = {
    nodes: hostnamesOf(groups.flat()),
    update: name,
    spec,
    target: targetIdOf({ spec, bundle }),
    boots: mayBoot(spec),
    waves: isBack ? waves.toReversed() : waves,
    hooks: {
      drain: hooks.filter((hook) => hook.name === "drain"),
      gates: hooks.filter(({ isGate }) => isGate),
      undrain: spec.drain.enabled ? hooks.filter((hook) => hook.name === "undrain") : [],
    },
    ...(bundle && { bundle }),
  };
  if (isBack) return common;
  const { timeouts, healthGates, strategy, window } = spec;
  const before = canaries > 0 ? waves[canaries] : undefined;
  const seconds = strategy.canary?.soakSeconds;
  const promotions =
    before === undefined
      ? []
      : [{ before, canaries: waves.slice(0, canaries).join(",").replaceAll(",", ", "), seconds }];
  const longest = Math.max(timeouts.activateSeconds, mayBoot(spec) ? timeouts.rebootSeconds : 0);
  return {
    ...common,
    ...(bundle && { version: bundle.version }),
    holdLimit: longest + healthGates.reduce((sum, { withinSeconds }) => sum + withinSeconds, 0),
    windows: window ? [{ ...window, days: window.days ?? weekdays }] : [],
    asks: seconds === undefined ? promotions : [],
    soaks: seconds === undefined ? [] : promotions,
  };
}

/** Whether nodes may boot for the update; each node's updater decides for its own. */
function mayBoot({ target, activation: { mode, rebootPolicy } }: UpdateSpec): boolean {
  return updateKindOf({ target }) === "system" && mode !== "test" && rebootPolicy !== "never";
}
