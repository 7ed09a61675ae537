import type { Emit } from "#engine/events/event.ts";
import type { RunVariables } from "#engine/program/bootstrap.ts";
import type { Blob } from "#engine/step/blob.ts";
import type { Endpoint, Host } from "#engine/transport/host.ts";

/** A node as others see it that feed it: its connection, and what its shells are told. */
export interface FedNode {
  readonly node: string;
  readonly endpoint: Endpoint;
  readonly host: Host;
  readonly run: RunVariables;
  readonly sudoPassword: (again?: boolean) => Promise<string | undefined>;
  readonly emit: Emit;
}

/** Brings contents to nodes from other nodes. Nothing of it rejects. */
export interface BlobFeed {
  /** Whether this one may come from another node; the methods below are for such. */
  takes(party: FedNode, blob: Blob): boolean;
  /**
   * Waits for its turn. `there`: the node has it under this name. `send`: the bastion has to send it, and then calls {@link keep}. `left`: the
   * node waits no more.
   */
  bring(party: FedNode, name: string, blob: Blob): Promise<"there" | "send" | "left">;
  /** The bastion gave all of it to the connection, and not yet the word that puts it in its place. True: all of it is there. */
  keep(party: FedNode, name: string, blob: Blob): Promise<boolean>;
  /** The node waits for nothing any more, and nothing is on its way to it. */
  leave(node: string): void;
  /** The session needs this connection no more. True: others still read over it, and the feed closes it from now on. */
  inherits(host: Host): boolean;
}
