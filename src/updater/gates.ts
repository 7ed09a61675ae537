import type { Gate } from "#rollout/spec.ts";
import { describeEnd } from "./nix.ts";
import type { Ports } from "./ports.ts";

/** The most that one attempt at a URL may take; a command has all the time that the gate has, and no less than this. */
const attemptMs = 10_000;

/** The part of a gate that is asked on the node: why it does not hold; undefined: it does, or it is asked elsewhere. */
export async function whyGateFails(
  ports: Ports,
  { http, nodeCommand, withinSeconds }: Gate,
): Promise<string | undefined> {
  if (http) {
    const status = await ports.ask(http.url, attemptMs).catch((error: unknown) => String(error));
    if (status !== http.status) return `${http.url} answers ${status}, not ${http.status}`;
  }
  if (nodeCommand !== undefined) {
    const ended = await ports.run(["sh", "-c", nodeCommand], Math.max(attemptMs, withinSeconds * 1000));
    if (ended.code !== 0) return `the command ${describeEnd(ended)}`;
  }
  return undefined;
}
