import { createHash } from "node:crypto";
import { formatEndpoint, parseEndpoint } from "#api/endpoint.ts";
import type { AgentConfig } from "./agent-config.ts";

/** The mean time after which an agent that uses another controller than its first one tries the first one again. */
const returnMs = 300_000;

/**
 * The rank of a controller for this node, by rendezvous hashing (Thaler and Ravishankar, 1998): every node has an order of its own, so the
 * nodes are spread evenly, and those of a lost controller among all others. Undefined: the operator's order holds.
 */
export function controllerRank(
  { learnControllers, controllerAddr }: Pick<AgentConfig, "learnControllers" | "controllerAddr">,
  nodeId: string,
): ((endpoint: string) => string) | undefined {
  if (!learnControllers) return undefined;
  const preferred = controllerAddr === undefined ? undefined : formatEndpoint(parseEndpoint(controllerAddr));
  return (endpoint) =>
    endpoint === preferred ? "" : createHash("sha256").update(`${nodeId} ${endpoint}`).digest("hex");
}

/**
 * Whether an agent that uses another controller than its first one tries the first one now; asked once a heartbeat. By chance,
 * without a timer: ten thousand agents of a controller that is back come over minutes.
 */
export function isTimeToReturn(interval: number, random: () => number): boolean {
  return random() < interval / returnMs;
}
