import type { Gate } from "#rollout/spec.ts";
import { describeEnd } from "./nix.ts";
import { endOutside, runOutside } from "./outside.ts";
import type { Ports } from "./ports.ts";

/** Milliseconds for one attempt at a URL. A command has this time or its gate's, whichever is longer. */
const attemptMs = 10_000;
/** A unit of its own, so that no step waits for a gate. */
const unit = "kcore-update-gate.service";

/**
 * Checks a gate's HTTP request and command on the node; returns the reason why it fails, undefined if it holds or has neither.
 * `msLeft` counts the whole activation. A command runs without the confinement of the updater's unit.
 */
export async function whyGateFails(
  ports: Ports,
  { http, nodeCommand, withinSeconds }: Gate,
  msLeft: () => number,
): Promise<string | undefined> {
  const within = (limitMs: number): number => Math.max(1, Math.min(limitMs, msLeft()));
  if (http) {
    const status = await ports.ask(http.url, within(attemptMs)).catch((error: unknown) => String(error));
    if (status !== http.status) return `${http.url} answers ${status}, not ${http.status}`;
  }
  if (nodeCommand !== undefined) {
    const end = ports.uptime() + within(Math.max(attemptMs, withinSeconds * 1000));
    const rest = (): number => Math.max(1, end - ports.uptime());
    const ended = await runOutside(ports, ["sh", "-c", nodeCommand], rest, unit);
    if (ended.code !== 0) return `the command ${describeEnd(ended)}`;
  }
  return undefined;
}

/** Ends the gate command of an earlier updater that was interrupted. */
export async function endGate(ports: Ports): Promise<void> {
  await endOutside(ports, unit);
}
