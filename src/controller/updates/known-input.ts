import type { RuntimeFacts } from "#api/runtime-facts.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import type { RolloutInput, RolloutNode } from "#rollout/rollout-input.ts";
import { matchSelector } from "#rollout/selection.ts";
import type { ClusterControllers } from "../cluster/controllers.ts";
import type { Liveness } from "../cluster/node-lives.ts";
import {
  gatherNodes,
  hostnameOf,
  isShown,
  labelsOf,
  rolesOf,
  admissionOf,
  type NodeParts,
} from "../cluster/node-view.ts";
import type { Records } from "../cluster/records.ts";
import { isUnderWay, planHashOf, targetOf, type UpdateIndex, type UpdateRecords } from "./update-records.ts";

interface NodeSources {
  readonly records: Records;
  readonly liveness: Pick<Liveness, "of">;
  readonly controllers: Pick<ClusterControllers, "peers" | "isMember">;
}

export interface InputSources extends NodeSources {
  readonly index: UpdateIndex;
  readonly controllerId: string;
  readonly clock: () => number;
}

/** The input of a decision, with further facts about its nodes. */
export interface KnownInput extends RolloutInput {
  readonly nodes: ReadonlyMap<string, KnownNode>;
  /** The ids of the nodes with which this generation began; before it begins, of the nodes that its selector matches now. */
  readonly nodeIds: readonly string[];
}

/** The input of the next decision about an update, as this controller knows it now. */
export function inputOf(
  parts: InputSources,
  update: UpdateRecords,
  nodes: KnownInput["nodes"] = readNodes(parts),
): KnownInput {
  const { head, statement, approved, progress, ...records } = update;
  const { name } = records;
  const { generation } = head.value;
  const chosen = progress?.value.generation === generation ? progress.value.waves.flat() : [];
  const nodeIds =
    chosen.length > 0 ? chosen : matchSelector(nodes.values(), statement.spec.selector).map(({ id }) => id);
  const isOther = (one: UpdateRecords): boolean =>
    one.name !== name && isUnderWay(one) && nodeIds.some((id) => one.rows.has(id));
  return {
    ...records,
    generation,
    spec: statement.spec,
    target: targetOf(statement),
    self: parts.controllerId,
    // An approval holds for one manifest, its generation and its nodes.
    isApproved: approved?.generation === generation && approved.hash === presentHash(update, nodeIds),
    progress: progress?.value,
    nodes,
    nodeIds,
    now: parts.clock(),
    ...omitUndefined({ other: [...parts.index.all()].find(isOther)?.name }),
  };
}

/** The hash of the present plan, which an approval must name. */
export function presentHash({ head }: UpdateRecords, nodeIds: KnownInput["nodeIds"]): string {
  return planHashOf(head.value.hash, head.value.generation, nodeIds);
}

/** A node with the facts that its agent reports about the runtime. */
export interface KnownNode extends RolloutNode {
  readonly runtime: RuntimeFacts | undefined;
  readonly roles: readonly string[];
  readonly approval: string;
  /** Ms since 1970; 0: never. */
  readonly lastSeenAt: number;
  /** Free bytes on the file system of the Nix store. */
  readonly storeFree?: number;
}

/** The cluster's listed nodes, with the facts that a rollout needs. */
export function readNodes({ records, liveness, controllers }: NodeSources): ReadonlyMap<string, KnownNode> {
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
      ...omitUndefined({ replication }),
      isController: controllers.isMember(id),
    });
  }
  return known;
}

function readinessOf(parts: NodeParts, life: ReturnType<Liveness["of"]>) {
  const approval = admissionOf(parts);
  const isApproved = approval === "approved";
  const { isReady, reason, lastSeenAt, usage } = life;
  return {
    approval,
    isApproved,
    isReady: isApproved && isReady,
    lastSeenAt,
    ...omitUndefined({ reason, storeFree: usage?.storeFree, orderUntaken: usage?.orderUntaken }),
  };
}

function factsOf(id: string, parts: NodeParts) {
  const registered = parts.reg?.value;
  return {
    id,
    hostname: hostnameOf(parts),
    dc: registered?.dc ?? parts.expected?.value.dc ?? "",
    labels: labelsOf(parts),
    roles: rolesOf(parts),
    version: registered?.version ?? "",
    runtime: registered?.runtime,
  };
}
