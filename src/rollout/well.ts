import type { RolloutView } from "./view.ts";

/** Why a node is of no use at the moment, by what controllers know of it: what follows its name. Undefined: it is well. */
export function illnessOf({ nodes }: Pick<RolloutView, "nodes">, id: string): string | undefined {
  const node = nodes.get(id);
  if (!node) return "is no node of this cluster any more";
  if (!node.isApproved) return "is not approved";
  return node.isReady ? undefined : `is not ready: ${node.reason ?? "no heartbeat"}`;
}

/** What keeps an updated node from being well: of use, on the target, and of a controller, in step with the others. */
export function missingOf(view: Pick<RolloutView, "nodes" | "target">, id: string): string | undefined {
  const { nodes, target } = view;
  const illness = illnessOf(view, id);
  if (illness !== undefined) return `it ${illness}`;
  const { version, replication } = nodes.get(id) ?? {};
  if (target.version !== "" && version !== target.version)
    return `it says that it runs ${version}, not ${target.version}`;
  return replication && `its replication is not healthy: ${replication}`;
}
