import type { ApiClient } from "#api/client.ts";
import type { WatchLine } from "#api/controller-schemas.ts";
import { wait } from "#base/wait.ts";
import type { FleetDetail, FleetLink, FleetRun, FleetSnapshot } from "#tui/ink/fleet/snapshot.ts";
import { follow, ChangedParts } from "../cluster/follow.ts";
import type { Cluster } from "../cluster/open-cluster.ts";
import { fleetParts, fleetDetail, readFleet, snapshotOf, type FleetPart, type ClusterAnswers } from "./read-fleet.ts";
import { Trends } from "./trends.ts";

/** The pause after a read: `factor` times its duration, at least `least` milliseconds, so that a large cluster is read less often. */
const pause = { least: 500, factor: 4 };

/**
 * Parts that are read again without news of the watch: heartbeats and lag are no registers. Updates consist of registers
 * alone.
 */
const rereads: readonly { readonly ms: number; readonly parts: readonly FleetPart[] }[] = [
  { ms: 5000, parts: ["nodes", "controllers"] },
  { ms: 60_000, parts: fleetParts.filter((part) => part !== "updates") },
];

/** A controller that does not answer within so many milliseconds is shown as silent. */
const silentMs = 3000;

export interface FleetViews {
  readonly show: (snapshot: FleetSnapshot) => void;
  readonly showLink: (link: FleetLink) => void;
}

export interface Fleet {
  /** The cluster as the first answer reports it. */
  readonly snapshot: FleetSnapshot;
  /** Sets the node whose details the snapshots have; undefined for none. */
  readonly openNode: (id: string | undefined) => void;
  /** Keeps the views up to date until the signal; when a controller is lost, the next one is asked. */
  readonly run: (views: FleetViews) => Promise<void>;
}

/**
 * Reads the cluster for a view. `runsOf` finds the runs on a node by the node's name, `revisions` the revisions that nodes got last, by id;
 * both are absent outside a project. @throws KcoreError when no controller answers
 */
export async function openFleet(
  cluster: Cluster,
  signal: AbortSignal,
  runsOf?: (node: string) => Promise<readonly FleetRun[]>,
  revisions?: () => ReadonlyMap<string, string>,
): Promise<Fleet> {
  let answers = await cluster.ask((client) => readFleet(client, new Set(fleetParts)));
  const news = new ChangedParts<FleetPart>();
  const trends = new Trends();
  const others: ClusterAnswers["others"] = new Map();
  const pending = new Set<string>();
  let nodeId: string | undefined;
  let detail: FleetDetail | undefined;

  const current = (): FleetSnapshot => {
    const snapshot = snapshotOf(cluster.context, { ...answers, others });
    const known = revisions?.();
    const nodes = snapshot.nodes.map((node) => ({ ...node, trend: trends.of(node.id), revision: known?.get(node.id) }));
    return { ...snapshot, nodes, ...(detail && { detail }) };
  };
  const readNode = async (client: ApiClient, id: string): Promise<FleetDetail> => {
    const node = await client.call("getNode", {}, { id, signal });
    const runs = await runsOf?.(node.hostname);
    return { ...fleetDetail(node), ...(runs && { runs }) };
  };
  const run = async ({ show, showLink }: FleetViews): Promise<void> => {
    let began = 0;
    let lost: { readonly endpoint: string; readonly why: string } | undefined;
    const draw = (): void => void (signal.aborted || show(current()));
    const read = async (client: ApiClient, parts: ReadonlySet<FleetPart>): Promise<void> => {
      began = performance.now();
      const id = nodeId;
      const [next, found] = await Promise.all([
        readFleet(client, parts, { known: answers, signal }),
        // A node whose details cannot be read, such as a removed one, is shown without them.
        id === undefined ? undefined : readNode(client, id).catch(() => undefined),
      ]);
      answers = next;
      trends.note(answers.nodes, answers.at);
      if (id === nodeId) detail = found;
      if (parts.has("controllers")) void askOthers(cluster, answers, { others, pending, onTold: draw });
    };
    const onLost = (endpoint: string, { message }: Error, trying: string): void => {
      // While no controller answers, the view names the controller whose data it shows.
      lost ??= { endpoint, why: message };
      showLink({ state: "lost", ...lost, trying });
    };
    const watch = { news, all: fleetParts, registers: [], partsOf: outdatedParts, every: rereads };
    for await (const { endpoint } of follow(cluster, { ...watch, read, onLost, first: answers.asked, signal })) {
      lost = undefined;
      showLink({ state: "live", endpoint });
      draw();
      await wait(Math.max(pause.least, pause.factor * (performance.now() - began)), signal).catch(() => undefined);
    }
  };
  return {
    snapshot: current(),
    openNode: (id) => {
      nodeId = id;
      detail = undefined;
      news.tell("nodes");
    },
    run,
  };
}

/** The cluster as it is now, with each controller's own view of its replication. */
export async function readFleetOnce(cluster: Cluster): Promise<FleetSnapshot> {
  const answers = await cluster.ask((client) => readFleet(client, new Set(fleetParts)));
  const others: ClusterAnswers["others"] = new Map();
  await askOthers(cluster, answers, { others, pending: new Set(), onTold: () => undefined });
  return snapshotOf(cluster.context, { ...answers, others });
}

/** Asks each other controller about its replication, and calls `onTold` after each answer, so that a slow one delays no view. */
async function askOthers(
  { clientAt }: Cluster,
  { controllers }: ClusterAnswers,
  {
    others,
    pending,
    onTold,
  }: { readonly others: ClusterAnswers["others"]; readonly pending: Set<string>; readonly onTold: () => void },
): Promise<void> {
  for (const id of others.keys()) if (!controllers.some(({ controllerId }) => controllerId === id)) others.delete(id);
  const wanted = controllers.filter(
    ({ controllerId, address, state }) => state !== "self" && address !== "" && !pending.has(controllerId),
  );
  await Promise.all(
    wanted.map(async ({ controllerId: id, address }) => {
      pending.add(id);
      try {
        const signal = AbortSignal.timeout(silentMs);
        others.set(id, await clientAt(address).call("replicationStatus", {}, { signal }));
      } catch (error) {
        const { name, message } = error as Error;
        const isLate = name === "TimeoutError";
        others.set(id, { silent: isLate ? `${address} gave no answer within ${silentMs / 1000} s` : message });
      }
      pending.delete(id);
      onTold();
    }),
  );
}

/** The parts that are out of date after a line of the watch. */
export function outdatedParts(line: WatchLine): readonly FleetPart[] {
  if (line.type === "soft") return line.about === "conflicts" ? ["conflicts", "nodes"] : [line.about];
  if (line.type !== "register") return [];
  const [kind, , field] = line.key.split("/");
  switch (kind) {
    case "node":
      // Two nodes of one name are a conflict; a registration shows which certificate is in use.
      return field === "reg" ? ["nodes", "conflicts", "certificates"] : ["nodes", "conflicts"];
    case "controller":
      // A controller's sub-CA shows which of its certificates is in use.
      return field === "sub-ca" ? ["controllers", "certificates"] : ["controllers"];
    case "cert":
    case "revoked":
      return ["certificates"];
    case "conflict":
      return ["conflicts", "nodes"];
    case "update":
      return ["updates"];
    default:
      return [];
  }
}
