import { defined } from "#optional/defined.ts";
import type { RolloutNode } from "#rollout/rollout-input.ts";
import type { Controllers } from "../cluster/controllers.ts";
import type { Liveness } from "../cluster/node-lives.ts";
import { gatherNodes, isShown, labelsOf, nameOf, rolesOf, standingOf, type NodeParts } from "../cluster/node-view.ts";
import type { Records } from "../cluster/records.ts";
import type { RuntimeFacts } from "#api/runtime-facts.ts";

export interface NodeSources {
  readonly records: Records;
  readonly liveness: Pick<Liveness, "of">;
  readonly controllers: Pick<Controllers, "peers" | "isMember">;
}

/** A node with what its agent told of its runtime. */
export interface KnownNode extends RolloutNode {
  readonly runtime: RuntimeFacts | undefined;
  readonly roles: readonly string[];
  readonly approval: string;
  /** Ms since 1970; 0: never. */
  readonly lastSeenAt: number;
  /** Bytes that are free where its Nix store lies. */
  readonly storeFree?: number;
}

/** The nodes that are shown, as a rollout looks at them. */
export function knowNodes({ records, liveness, controllers }: NodeSources): ReadonlyMap<string, KnownNode> {
  const peers = new Map(controllers.peers().map((peer) => [peer.controllerId, peer]));
  const known = new Map<string, KnownNode>();
  for (const [id, parts] of gatherNodes(records)) {
    if (!isShown(parts)) continue;
    const life = liveness.of(id);
    const peer = peers.get(id);
    const replication = peer && !peer.inStep ? (peer.reason ?? "it is not in step") : undefined;
    known.set(id, {
      ...factsOf(id, parts),
      ...readinessOf(parts, life),
      ...defined({ replication }),
      isController: controllers.isMember(id),
    });
  }
  return known;
}

function readinessOf(parts: NodeParts, life: ReturnType<Liveness["of"]>) {
  const approval = standingOf(parts);
  const isApproved = approval === "approved";
  const { isReady, reason, lastSeenAt, usage } = life;
  return {
    approval,
    isApproved,
    isReady: isApproved && isReady,
    lastSeenAt,
    ...defined({ reason, storeFree: usage?.storeFree, orderUntaken: usage?.orderUntaken }),
  };
}

function factsOf(id: string, parts: NodeParts) {
  const told = parts.reg?.value;
  return {
    id,
    hostname: nameOf(parts),
    dc: told?.dc ?? parts.expected?.value.dc ?? "",
    labels: labelsOf(parts),
    roles: rolesOf(parts),
    version: told?.version ?? "",
    runtime: told?.runtime,
  };
}
