import type { RolloutInput } from "./rollout-input.ts";

/** Why a node is of no use at the moment, worded to follow its name; undefined: it is ready. */
export function notReadyReason({ nodes }: Pick<RolloutInput, "nodes">, id: string): string | undefined {
  const node = nodes.get(id);
  if (!node) return "is no node of this cluster any more";
  if (!node.isApproved) return "is not approved";
  return node.isReady ? undefined : `is not ready: ${node.reason ?? "no heartbeat"}`;
}

/** Why an updated node does not count as done: not ready, another version, or replication that is not healthy. */
export function notUpdatedReason(input: Pick<RolloutInput, "nodes" | "target">, id: string): string | undefined {
  const { nodes, target } = input;
  const notReady = notReadyReason(input, id);
  if (notReady !== undefined) return `it ${notReady}`;
  const { version, replication } = nodes.get(id) ?? {};
  if (target.version !== "" && version !== target.version)
    return `it says that it runs ${version}, not ${target.version}`;
  return replication && `its replication is not healthy: ${replication}`;
}
