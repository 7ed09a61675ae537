import { formatBinary } from "#base/units.ts";
import { ApiRefusal, type ApiClient, type CallOptions } from "#api/client.ts";
import type { ControllerView, ReplicationView } from "#api/controller-schemas.ts";
import type { NodeDetail } from "#api/schemas.ts";
import type { UpdateView } from "#api/update-schemas.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { formatEndpoint } from "#api/endpoint.ts";
import type {
  FleetConflict,
  FleetController,
  FleetDetail,
  FleetReplication,
  FleetSnapshot,
  FleetUpdate,
} from "#tui/ink/fleet/snapshot.ts";
import { troubleOf } from "../update/draw-update.ts";
import { conflictOfEdits, conflictOfName } from "#tui/columns/conflict-columns.ts";
import { taintText } from "#tui/fleet-words.ts";

/** A part of the cluster that can be read by itself. */
export type FleetPart = "nodes" | "controllers" | "certificates" | "conflicts" | "updates";
export const fleetParts: readonly FleetPart[] = ["nodes", "controllers", "certificates", "conflicts", "updates"];

/** A controller's own view of its replication, or the reason why it did not answer. */
type OwnView = ReplicationView | { readonly silent: string };

/** The cluster as one controller reports it. */
export interface ClusterAnswers extends Pick<
  FleetSnapshot,
  "asked" | "at" | "nodes" | "certificates" | "conflicts" | "updates"
> {
  readonly controllers: readonly ControllerView[];
  /** The replication of the controller that answered. */
  readonly own: ReplicationView;
  /** The replication of the other controllers, by id, as far as they were asked. */
  readonly others: Map<string, OwnView>;
}

/** Reads these parts, and takes the others from `known`. @throws KcoreError as ApiClient.call */
export async function readFleet(
  client: ApiClient,
  parts: ReadonlySet<FleetPart>,
  { known, signal }: { readonly known?: ClusterAnswers; readonly signal?: AbortSignal } = {},
): Promise<ClusterAnswers> {
  const options = omitUndefined({ signal });
  const wants = (part: FleetPart): boolean => parts.has(part);
  const [nodes, controllers, certificates, conflicts, updates] = await Promise.all([
    wants("nodes") ? client.call("listNodes", {}, options) : known,
    wants("controllers")
      ? Promise.all([client.call("listControllers", {}, options), client.call("replicationStatus", {}, options)])
      : undefined,
    wants("certificates") ? client.call("listCertificates", {}, options) : known,
    wants("conflicts") ? readConflicts(client, options) : known?.conflicts,
    wants("updates") ? readRollouts(client, options) : known?.updates,
  ]);
  const [list, own] = controllers ?? [known, known?.own];
  if (!nodes || !list || !own || !certificates || !conflicts || !updates)
    throw new Error("nothing was read, and nothing known");
  return {
    asked: formatEndpoint(client.endpoint),
    at: Date.now(),
    nodes: nodes.nodes,
    controllers: list.controllers,
    own,
    others: new Map(),
    certificates: certificates.certificates,
    conflicts,
    updates,
  };
}

/** The snapshot that a view draws. */
export function snapshotOf(
  context: string,
  { asked, at, nodes, controllers, own, others, certificates, conflicts, updates }: ClusterAnswers,
): FleetSnapshot {
  const names = new Map(controllers.map(({ controllerId, address }) => [controllerId, address || controllerId]));
  return {
    context,
    at,
    asked,
    nodes,
    controllers: controllers
      .toSorted((a, b) => compare(`${a.dc} ${a.address}`, `${b.dc} ${b.address}`))
      .map((controller) => {
        const { controllerId, state } = controller;
        return withReplication(controller, state === "self" ? own : others.get(controllerId), names);
      }),
    certificates,
    conflicts,
    updates,
  };
}

function withReplication(
  controller: ControllerView,
  view: OwnView | undefined,
  names: ReadonlyMap<string, string>,
): FleetController {
  // Operators know a controller by its address, not its id.
  const named = (text: string): string => text.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, (id) => names.get(id) ?? id);
  if (view === undefined) return controller;
  if ("silent" in view) return { ...controller, silent: view.silent };
  const { healthy, problems, readOnly, registers, tombstones, quarantined, alarms, peers } = view;
  const replication: FleetReplication = {
    healthy,
    problems: problems.map(named),
    readOnly,
    registers,
    tombstones,
    quarantined,
    alarms: alarms.map(({ code, message }) => ({ code, message: named(message) })),
    peers: peers.map((peer) => ({ ...peer, address: names.get(peer.controllerId) ?? peer.controllerId })),
  };
  return { ...controller, replication };
}

async function readConflicts(client: ApiClient, options: CallOptions): Promise<readonly FleetConflict[]> {
  const { conflicts, names } = await client.call("listConflicts", {}, options);
  return [...conflicts.map(conflictOfEdits), ...names.map(conflictOfName)];
}

/** Rollouts that are not over, each with its nodes; a controller of a version without rollouts has none. */
async function readRollouts(client: ApiClient, options: CallOptions): Promise<readonly FleetUpdate[]> {
  try {
    const { updates } = await client.call("listUpdates", {}, options);
    const going = updates.filter(({ phase }) => ["pending", "ready", "rolling_out", "rolling_back"].includes(phase));
    return (await Promise.all(going.map(({ name }) => client.call("getUpdate", {}, { ...options, id: name })))).map(
      fleetUpdateOf,
    );
  } catch (error) {
    if (error instanceof ApiRefusal && error.reason === "API_UNKNOWN") return [];
    throw error;
  }
}

function fleetUpdateOf({
  name,
  generation,
  phase,
  target,
  waits,
  updatedAt,
  owner,
  nodeStatus,
}: UpdateView): FleetUpdate {
  return {
    name,
    generation,
    phase,
    target,
    ...omitUndefined({ waits }),
    since: updatedAt,
    owner: { name: owner.endpoint ?? owner.id, heard: owner.heard },
    nodes: nodeStatus.map(({ id, hostname, dc, phase: nodePhase, since, failure }) => ({
      id,
      hostname,
      dc,
      phase: nodePhase,
      since,
      ...(failure && { trouble: troubleOf({ failure }) }),
    })),
  };
}

/** The facts that the page of a node shows beside those of the list. */
export function fleetDetail({ id, storage, net, approvalBy, approvalReason, taints }: NodeDetail): FleetDetail {
  const disks = (storage?.disks ?? []).map(
    ({ path, size, model = "" }) => `${path} ${formatBinary(size)}${model === "" ? "" : ` ${model}`}`,
  );
  const cards = (net?.interfaces ?? []).map(({ name, addresses }) => `${name} ${addresses.join(" ")}`.trimEnd());
  const facts: readonly (readonly [string, string | undefined])[] = [
    ["storage", storage?.backend],
    ["disks", disks.join(", ")],
    ["network", cards.join(", ")],
    ["taints", taints.map(taintText).join(", ")],
    ["approved by", [approvalBy, approvalReason].filter((text) => text !== undefined && text !== "").join(": ")],
  ];
  return {
    id,
    facts: facts.flatMap(([label, value]) => (value === undefined || value === "" ? [] : [[label, value]])),
  };
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
