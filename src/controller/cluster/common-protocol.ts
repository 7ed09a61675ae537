import type { MergeKind } from "#crdt/merge-kind.ts";
import { Refused } from "./refused.ts";
import { protocols } from "../replica/messages.ts";
import type { Replica } from "../replica/replica.ts";
import { kindOf, kinds, keys } from "./registers.ts";

/** The replication protocol that a key came with: from there on every controller merges it as this one does. */
function protocolOf(key: string): number {
  const kind = kindOf(key);
  const found: { readonly merge: MergeKind; readonly since?: number } | undefined = kind && kinds[kind];
  return found?.since ?? protocols[0];
}

/**
 * Refuses to write what some registered controller would merge otherwise, or for the first time after its upgrade: two
 * controllers would hold different values for good. One that never told what it speaks counts as the oldest there is.
 * @throws Refused 409 CLUSTER_MIXED
 */
export function checkCommonProtocol(replica: Pick<Replica, "entries" | "get">, written: readonly string[]): void {
  for (const key of written) {
    const needed = protocolOf(key);
    if (needed <= protocols[0]) continue;
    for (const [auth] of replica.entries("controller/")) {
      const id = /^controller\/([^/]+)\/auth$/.exec(auth)?.[1];
      if (id === undefined) continue;
      const spoken = toldBy(replica, id);
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

function toldBy(replica: Pick<Replica, "get">, id: string): number {
  const { protocol } = JSON.parse(replica.get(keys.controller(id).version)?.text ?? "{}") as { protocol?: unknown };
  return typeof protocol === "number" ? protocol : protocols[0];
}
