import type { ApiClient } from "#api/client.ts";
import type { WatchLine } from "#api/schemas.ts";
import { wait } from "#base/wait.ts";
import type { FleetDetail, FleetLink, FleetRun, FleetSnapshot } from "#tui/ink/fleet/snapshot.ts";
import { follow, News, type FollowedWatch } from "../cluster/follow-watch.ts";
import type { Cluster } from "../cluster/open-cluster.ts";
import { OtherControllers } from "./ask-controllers.ts";
import { allParts, detailOf, readFleet, snapshotOf, type Part, type Told } from "./read-fleet.ts";
import { Trends } from "./trends.ts";

/** Milliseconds. */
const pause = { least: 500, share: 4 };
/** What is read again even if nothing was told: signs of life and lag are no registers. */
const readAgain: FollowedWatch<Part>["every"] = [
  { ms: 5000, parts: ["nodes", "controllers"] },
  // Rollouts are registers through and through: where there is none, nobody asks.
  { ms: 60_000, parts: allParts.filter((part) => part !== "updates") },
];

export interface FleetFollowing {
  readonly signal: AbortSignal;
  /** What was read to begin with. */
  readonly first: Told;
  readonly show: (snapshot: FleetSnapshot) => void;
  readonly tell: (link: FleetLink) => void;
  /** The runs on a node, by its name; absent outside a project. */
  readonly runsOf?: (node: string) => Promise<readonly FleetRun[]>;
}

/** Keeps a view of the cluster up to date, until its signal; when a controller is lost, the next one is asked. */
export class FleetFollower {
  readonly #cluster: Cluster;
  readonly #options: FleetFollowing;
  readonly #others: OtherControllers;
  readonly #news = new News<Part>();
  #told: Told;
  readonly #trends = new Trends();
  #nodeId: string | undefined;
  #detail: FleetSnapshot["detail"];

  constructor(cluster: Cluster, options: FleetFollowing) {
    this.#cluster = cluster;
    this.#options = options;
    this.#told = options.first;
    this.#others = new OtherControllers(cluster);
  }

  /** The node of which more is wanted. */
  openNode(id: string | undefined): void {
    this.#nodeId = id;
    this.#detail = undefined;
    this.#news.tell("nodes");
  }

  /** Resolves when the signal is given; never throws for a controller that is lost. */
  async run(): Promise<void> {
    const { signal, tell } = this.#options;
    const news = this.#news;
    let began = 0;
    let lost: { readonly endpoint: string; readonly why: string } | undefined;
    const following = {
      news,
      registers: [],
      partsOf,
      every: readAgain,
      signal,
      first: this.#told.asked,
      read: (client: ApiClient, parts: ReadonlySet<Part>) => {
        began = performance.now();
        return this.#read(client, parts, signal);
      },
      onLost: (endpoint: string, { message }: Error, trying: string): void => {
        // While no controller answers, the one whose data are shown is the one that is lost.
        lost ??= { endpoint, why: message };
        tell({ state: "lost", ...lost, trying });
        news.tell(...allParts);
      },
    };
    news.tell(...allParts);
    for await (const { endpoint } of follow(this.#cluster, following)) {
      lost = undefined;
      tell({ state: "live", endpoint });
      this.#show();
      // A large cluster is read less often: neither we nor its controller should do nothing else.
      const pauseMs = Math.max(pause.least, pause.share * (performance.now() - began));
      await wait(pauseMs, signal).catch(() => undefined);
    }
  }

  async #read(client: ApiClient, parts: ReadonlySet<Part>, signal: AbortSignal): Promise<void> {
    const id = this.#nodeId;
    const [told, detail] = await Promise.all([
      readFleet(client, parts, this.#told, signal),
      // A node that is gone meanwhile has no details.
      id === undefined ? undefined : this.#readNode(client, id, signal).catch(() => undefined),
    ]);
    this.#told = told;
    this.#trends.note(told.nodes, told.at);
    if (id === this.#nodeId) this.#detail = detail;
    if (parts.has("controllers")) this.#others.ask(told.controllers, () => this.#show());
  }

  async #readNode(client: ApiClient, id: string, signal: AbortSignal): Promise<FleetDetail> {
    const node = await client.call("getNode", {}, { id, signal });
    const runs = await this.#options.runsOf?.(node.hostname);
    return { ...detailOf(node), ...(runs && { runs }) };
  }

  #show(): void {
    if (this.#options.signal.aborted) return;
    const told = snapshotOf(this.#cluster.context, this.#told, this.#others.tellings);
    const nodes = told.nodes.map((node) => ({ ...node, trend: this.#trends.of(node.id) }));
    const snapshot = { ...told, nodes };
    this.#options.show(this.#detail ? { ...snapshot, detail: this.#detail } : snapshot);
  }
}

/** What a line of the watch makes old. */
export function partsOf(line: WatchLine): readonly Part[] {
  if (line.type === "soft") return line.about === "conflicts" ? ["conflicts", "nodes"] : [line.about];
  if (line.type !== "register") return [];
  switch (line.key.slice(0, line.key.indexOf("/"))) {
    case "node":
      // Two nodes of one name are a conflict; a registration tells which certificate is in use.
      return ["nodes", "conflicts"];
    case "controller":
      return ["controllers"];
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
