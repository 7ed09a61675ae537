import type { Refused } from "#controller/cluster/refused.ts";
import { handlersFor, type HandlerParts } from "#controller/handlers.ts";
import type { KnownCaller } from "#controller/server/caller.ts";

/** A request as a controller receives it. */
export interface Request {
  readonly method: string;
  /** The value of `{id}` in the path. */
  readonly id: string;
  readonly body: unknown;
  readonly role: "node" | "operator";
  readonly caller: string;
}

export type Answer = { readonly reply: unknown } | { readonly refused: Refused };

type Handler = (call: { readonly caller: KnownCaller; readonly id: string; readonly body: unknown }) => unknown;

/** The product's handlers, with only those parts that a rollout needs. */
export function handleRequests(
  parts: Pick<HandlerParts, "controllerId" | "records" | "nodes" | "controllers" | "updates" | "log" | "clock">,
): (request: Request) => unknown {
  const revocations = { newsFor: () => ({}), stop: () => undefined };
  const handlers = handlersFor({ ...parts, revocations } as unknown as HandlerParts);
  return ({ method, id, body, role, caller }) => {
    const handler = handlers[method as keyof typeof handlers] as unknown as Handler;
    return handler({ id, body, caller: callerOf(role, caller) });
  };
}

function callerOf(role: "node" | "operator", id: string): KnownCaller {
  const certificate = { id, key: "k", serial: "01", certificateExpiresAt: neverExpires.getTime() };
  return { ...certificate, identity: { role, id, cluster: "sim" } } as unknown as KnownCaller;
}

/** The end of certificates. */
export const neverExpires = new Date("2100-01-01");
