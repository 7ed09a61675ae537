import type { NodeStatusName } from "../../fleet-labels.ts";

/** A node as the dashboard shows it. Times are ISO 8601 in UTC, empty where there is none. */
export interface FleetNode {
  readonly id: string;
  readonly hostname: string;
  readonly address: string;
  readonly dc: string;
  readonly roles: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  readonly cpu: number;
  /** Bytes. */
  readonly memory: number;
  readonly version: string;
  readonly approval: string;
  readonly status: NodeStatusName;
  readonly reason?: string | undefined;
  readonly registered: string;
  readonly lastSeen: string;
  /** The last report: the load average of one minute, bytes of memory and of the fuller disk. */
  readonly usage?: FleetUsage | undefined;
  /** Absent without earlier reports. */
  readonly trend?: FleetTrend | undefined;
  readonly certificateExpires: string;
  readonly conflicts: number;
  readonly nameConflict?: { readonly with: readonly string[]; readonly keepsName: boolean } | undefined;
}

export interface FleetUsage {
  readonly load?: number | undefined;
  readonly memoryUsed?: number | undefined;
  readonly diskUsed?: number | undefined;
  readonly diskSize?: number | undefined;
}

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
export interface FleetPeer {
  readonly controllerId: string;
  readonly address: string;
  readonly state: string;
  readonly inStep: boolean;
  readonly reason?: string | undefined;
  /** Transactions still to be received from this peer, and those still to be sent to it. */
  readonly behind: number;
  readonly ahead: number;
  readonly rttMs?: number | undefined;
  readonly clockOffsetMs?: number | undefined;
  readonly lastContact: string;
}

/** A controller's own report of its replication. */
export interface FleetReplication {
  readonly healthy: boolean;
  readonly problems: readonly string[];
  readonly readOnly?: string | undefined;
  readonly registers: number;
  readonly tombstones: number;
  readonly quarantined: number;
  readonly alarms: readonly { readonly code: string; readonly message: string }[];
  readonly peers: readonly FleetPeer[];
}

export interface FleetController {
  readonly controllerId: string;
  readonly dc: string;
  readonly address: string;
  readonly version: string;
  /** The state in the asked controller's view; `self` for itself. */
  readonly state: string;
  readonly registered: string;
  readonly lastContact: string;
  readonly certificateExpires?: string | undefined;
  readonly subCa?: { readonly serial: string; readonly notAfter: string } | undefined;
  /** The controller's own report; absent before its first answer. */
  readonly replication?: FleetReplication;
  /** The reason why it could not be asked. */
  readonly silent?: string;
}

export interface FleetCertificate {
  readonly serial: string;
  readonly role: string;
  /** The id of the holder. */
  readonly id: string;
  readonly issuer: string;
  readonly issued: string;
  readonly notAfter: string;
  readonly status: "active" | "expired" | "revoked";
  readonly current: boolean;
}

export interface FleetEdit {
  /** The value as JSON. */
  readonly value: string;
  readonly origin: string;
  readonly at: string;
}

/** Two concurrent edits of one thing; or a host name that several nodes have. */
export interface FleetConflict {
  readonly id: string;
  /** The register, or the host name. */
  readonly key: string;
  readonly kind: "edit" | "name";
  readonly at: string;
  readonly winner: FleetEdit;
  readonly loser: FleetEdit;
}

/** A node in a rollout. */
export interface FleetUpdateNode {
  readonly id: string;
  readonly hostname: string;
  readonly dc: string;
  readonly phase: string;
  readonly since: string;
  /** The problem of the node. */
  readonly trouble?: string;
}

/** A rollout that is not over. */
export interface FleetUpdate {
  readonly name: string;
  readonly generation: number;
  readonly phase: string;
  readonly target: string;
  /** The reason of its wait. */
  readonly waits?: string | undefined;
  /** When its phase began. */
  readonly since: string;
  /** The controller that carries it out, and whether its heartbeats arrive. */
  readonly owner: { readonly name: string; readonly heard: boolean };
  readonly nodes: readonly FleetUpdateNode[];
}

/** The data of the dashboard at one moment, as a plain value. */
export interface FleetSnapshot {
  readonly context: string;
  /** Milliseconds since the epoch when it was read. */
  readonly at: number;
  /** `host:port` of the controller that answered. */
  readonly asked: string;
  readonly nodes: readonly FleetNode[];
  readonly controllers: readonly FleetController[];
  readonly certificates: readonly FleetCertificate[];
  readonly conflicts: readonly FleetConflict[];
  readonly updates: readonly FleetUpdate[];
  /** Details of the open node. */
  readonly detail?: FleetDetail;
}

export interface FleetDetail {
  readonly id: string;
  readonly facts: readonly (readonly [string, string])[];
  /** The runs of the node, the newest first; absent outside a project. */
  readonly runs?: readonly FleetRun[];
}

/** The connection to the controller. While it is lost, the last snapshot stays, marked as stale. */
export type FleetLink =
  | { readonly state: "live"; readonly endpoint: string }
  | { readonly state: "lost"; readonly endpoint: string; readonly why: string; readonly trying: string };
