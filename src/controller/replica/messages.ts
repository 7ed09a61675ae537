import type { Page } from "#crdt/page.ts";
import type { WireVector } from "#crdt/version-vector.ts";

/**
 * The protocols this build speaks, oldest and newest; two controllers use the newest that both do. A protocol is the messages, the
 * pages, the digest, and how each key is merged: what a controller of the release before would read otherwise, or not at all,
 * makes the next one. Fields that may be passed over do not. `controller/ID/version` tells the newest to all.
 */
export const protocols = [1, 1] as const;

type Range = readonly [oldest: number, newest: number];

/** Whether this build and one that speaks these have a protocol in common. */
export function speaks([oldest, newest]: Range): boolean {
  return newest >= protocols[0] && oldest <= protocols[1];
}

export const protocolsText = `this controller speaks replication protocol ${protocols.join(" to ")}`;

export type RefusalCode =
  | "CLUSTER_DIFFERS"
  | "PROTOCOL_UNKNOWN"
  | "NOT_REGISTERED"
  | "NOT_READY"
  | "EQUIVOCATION"
  | "SAME_CONTROLLER"
  | "MALFORMED";

export type Walls = readonly [received: number, sent: number];

/**
 * What goes with a version vector that its receiver may take as an acknowledgement: what the sender is journaling, own writes
 * above all. These were made without having seen the newest of the vector; nothing may be forgotten before they have arrived.
 */
export interface Soon {
  readonly soon?: WireVector;
}

/** What is said at the end of a pull. */
export interface PullEnd extends Soon {
  readonly upto: WireVector;
  /** Above every stamp the sender has seen. */
  readonly hlc: string;
  /** A full exchange: what `upto` covers and was not sent is deleted. */
  readonly full?: { readonly floor: WireVector; readonly hlc: string };
}

/** All that controllers say to each other about replication (docs/adr/0501-replication-core.md). Plain JSON. */
export type PeerMessage =
  | ({
      readonly t: "hello";
      readonly cluster: string;
      readonly id: string;
      readonly origin: string;
      /** Random per process. */
      readonly boot: string;
      readonly proto: readonly [min: number, max: number];
      readonly ready: boolean;
      readonly vv: WireVector;
    } & Soon)
  /** The peer's hello is accepted. `walls`: when it came, and when this left, by the sender's wall clock. */
  | { readonly t: "welcome"; readonly proto: number; readonly walls: Walls }
  | { readonly t: "refuse"; readonly code: RefusalCode; readonly message: string }
  /** Transactions `from+1…upto` of the sender's own origin, whole. */
  | { readonly t: "push"; readonly page: Page; readonly origin: string; readonly from: number; readonly upto: number }
  | ({ readonly t: "have"; readonly ready: boolean; readonly vv: WireVector } & Soon)
  /** `buckets`: a repair, only registers of these digest buckets, covered or not. */
  | ({
      readonly t: "pull";
      readonly sync: number;
      readonly vv: WireVector;
      readonly window: number;
      readonly buckets?: readonly number[];
    } & Soon)
  | { readonly t: "credit"; readonly sync: number }
  /** `full`: the puller has not seen what was forgotten here; it must take all, and let go of the rest. */
  | {
      readonly t: "page";
      readonly sync: number;
      readonly index: number;
      readonly full: boolean;
      readonly page: Page;
      readonly end?: PullEnd;
    }
  | ({
      readonly t: "ping";
      readonly n: number;
      readonly ready: boolean;
      readonly vv: WireVector;
      readonly digest?: string;
    } & Soon)
  | { readonly t: "pong"; readonly n: number; readonly walls: Walls }
  | { readonly t: "digest"; readonly vv: WireVector; readonly sums: readonly string[] }
  /** Soft state (liveness of nodes): the newest (boot, seq) wins, never journaled. */
  | { readonly t: "soft"; readonly entries: readonly SoftEntry[] };

export interface SoftEntry {
  readonly key: string;
  readonly boot: number;
  readonly seq: number;
  readonly text: string;
}
