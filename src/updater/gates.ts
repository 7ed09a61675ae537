import type { Gate } from "#rollout/spec.ts";
import { describeEnd } from "./nix.ts";
import { endOutside, runOutside } from "./outside.ts";
import type { Ports } from "./ports.ts";

/** The limit of one attempt at a URL; a command has at least this time, and all the time of its gate. */
const attemptMs = 10_000;
/** A unit of its own: no step has to wait for a gate. */
const unit = "kcore-update-gate.service";

/**
 * The part of a gate that is asked on the node: why it does not hold; undefined: it does, or it is asked elsewhere. `left`: ms that are left
 * of the whole activation. A command sees the node as it is, without the confinement of the updater's unit.
 */
export async function whyGateFails(
  ports: Ports,
  { http, nodeCommand, withinSeconds }: Gate,
  left: () => number,
): Promise<string | undefined> {
  const within = (limitMs: number): number => Math.max(1, Math.min(limitMs, left()));
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

/** Ends the command of a gate that an earlier updater, which was cut off, asked. */
export async function endGate(ports: Ports): Promise<void> {
  await endOutside(ports, unit);
}
