import { Refused } from "./refused.ts";
import { protocols } from "../replica/messages.ts";
import type { Replica } from "../replica/create-replica.ts";
import { kindOf, kinds, keys } from "./registers.ts";

/** The first replication protocol in which every controller merges this key as this one does. */
function protocolOf(key: string): number {
  const kind = kindOf(key);
  return kind === undefined ? protocols[0] : kinds[kind].since;
}

/**
 * Refuses to write a register that some registered controller is too old to merge as this one does: two controllers would
 * hold different values for good. A controller that never announced its protocol counts as the oldest.
 * @throws Refused 409 CLUSTER_MIXED
 */
export function checkCommonProtocol(replica: Pick<Replica, "entries" | "get">, written: readonly string[]): void {
  for (const key of written) {
    const needed = protocolOf(key);
    if (needed <= protocols[0]) continue;
    for (const [id, spoken] of protocolsOf(replica)) {
      if (spoken >= needed) continue;
      throw new Refused(
        409,
        "CLUSTER_MIXED",
        `${key} needs replication protocol ${needed} on every controller, and ${id} speaks ${spoken}`,
        "upgrade that controller, or remove it: kcore controller remove",
      );
    }
  }
}

/** The newest replication protocol that every registered controller speaks. */
export function commonProtocol(replica: Pick<Replica, "entries" | "get">): number {
  return Math.min(protocols[1], ...protocolsOf(replica).map(([, spoken]) => spoken));
}

/** The registered controllers, each with its newest announced protocol. */
function protocolsOf(replica: Pick<Replica, "entries" | "get">): (readonly [id: string, spoken: number])[] {
  return [...replica.entries("controller/")].flatMap(([key]) => {
    const id = /^controller\/([^/]+)\/auth$/.exec(key)?.[1];
    return id === undefined ? [] : [[id, toldBy(replica, id)] as const];
  });
}

function toldBy(replica: Pick<Replica, "get">, id: string): number {
  const { protocol } = JSON.parse(replica.get(keys.controller(id).version)?.text ?? "{}") as { protocol?: unknown };
  return typeof protocol === "number" ? protocol : protocols[0];
}
