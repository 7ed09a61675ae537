import type { ControllerView, PeerView, ReplicationView } from "#api/controller-schemas.ts";
import type { CertificateView, NodeView } from "#api/schemas.ts";

/** A node as the API lists it. Times are ISO 8601 in UTC, empty where there is none. */
export interface FleetNode extends NodeView {
  /** The node's load in the last minutes; absent without earlier reports. */
  readonly trend?: FleetTrend | undefined;
  /** The revision of the project that the node got last, by the records of this bastion; absent without one. */
  readonly revision?: string | undefined;
}

/** The last report: the load average of one minute, bytes of memory and of the fuller disk. */
export type FleetUsage = NonNullable<NodeView["usage"]>;

/** A node's load in the last minutes: shares of 0 to 1, the newest last, one for each half minute. */
export interface FleetTrend {
  readonly load: readonly number[];
  readonly memory: readonly number[];
}

/** A run on a node, from the project's record. */
export interface FleetRun {
  readonly id: string;
  readonly state: string;
  readonly at: string;
  readonly command: string;
  /** The last milestone of the node in that run. */
  readonly milestone?: string;
}

/** A controller as another one sees it. */
export type FleetPeer = Omit<PeerView, "dc" | "phi">;

type Counted = "healthy" | "problems" | "readOnly" | "registers" | "tombstones" | "quarantined" | "alarms";
/** A controller's own report of its replication. */
export interface FleetReplication extends Pick<ReplicationView, Counted> {
  readonly peers: readonly FleetPeer[];
}

/** A controller as the controller that answered lists it. */
export interface FleetController extends ControllerView {
  /** The controller's own report; absent before its first answer. */
  readonly replication?: FleetReplication;
  /** The reason why the controller gave no report of its own. */
  readonly silent?: string;
}

export type FleetCertificate = CertificateView;

/** One side of a conflict; of a host name it has only a value. */
export interface FleetEdit {
  /** The value as JSON, or `(deleted)`; of a host name, ids of nodes. */
  readonly value: string;
  readonly origin: string;
  readonly at: string;
}

/** Concurrent edits of one register; or a host name that several nodes have. */
export interface FleetConflict {
  readonly id: string;
  /** The register, or the host name. */
  readonly key: string;
  readonly kind: "edit" | "name";
  readonly at: string;
  readonly winner: FleetEdit;
  /** The newest losing edit. */
  readonly loser: FleetEdit;
  /** The number of older losing edits; absent: none. */
  readonly others?: number;
}

/** A node in a rollout. */
export interface FleetUpdateNode {
  readonly id: string;
  readonly hostname: string;
  readonly dc: string;
  readonly phase: string;
  readonly since: string;
  readonly trouble?: string;
}

/** A rollout that is not over. */
export interface FleetUpdate {
  readonly name: string;
  readonly generation: number;
  readonly phase: string;
  readonly target: string;
  /** The reason why the rollout waits; absent: it does not wait. */
  readonly waits?: string | undefined;
  /** The time at which the rollout's phase began. */
  readonly since: string;
  /** The controller that carries the rollout out, and whether heartbeats of that controller arrive. */
  readonly owner: { readonly name: string; readonly heard: boolean };
  readonly nodes: readonly FleetUpdateNode[];
}

/** The data of the dashboard at one moment, as a plain value. */
export interface FleetSnapshot {
  readonly context: string;
  /** Milliseconds since the epoch: the time of its reading. */
  readonly at: number;
  /** The endpoint (`host:port`) of the controller that answered. */
  readonly asked: string;
  readonly nodes: readonly FleetNode[];
  readonly controllers: readonly FleetController[];
  readonly certificates: readonly FleetCertificate[];
  readonly conflicts: readonly FleetConflict[];
  readonly updates: readonly FleetUpdate[];
  /** Details of the open node. */
  readonly detail?: FleetDetail;
}

/** Details of one node, beyond the lists of the API. */
export interface FleetDetail {
  readonly id: string;
  readonly facts: readonly (readonly [string, string])[];
  /** The runs of the node, the newest first; absent outside a project. */
  readonly runs?: readonly FleetRun[];
}

/** The connection to a controller. While the connection is lost, views mark the last snapshot as stale. */
export type FleetLink =
  | { readonly state: "live"; readonly endpoint: string }
  | { readonly state: "lost"; readonly endpoint: string; readonly why: string; readonly trying: string };
