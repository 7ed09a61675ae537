import type { Emit } from "#engine/events/event.ts";
import type { RunVariables } from "#engine/program/bootstrap.ts";
import type { Blob } from "#engine/step/blob.ts";
import type { Endpoint, Host } from "#engine/transport/host.ts";

/** A node that may get contents from other nodes: its connection, and the run's values for its shells. */
export interface BlobPeer {
  readonly node: string;
  readonly endpoint: Endpoint;
  readonly host: Host;
  readonly run: RunVariables;
  readonly sudoPassword: (again?: boolean) => Promise<string | undefined>;
  readonly emit: Emit;
}

/** Brings contents to nodes from other nodes. No method rejects. */
export interface PeerBlobs {
  /** Whether this content may come from another node. {@link bring} and {@link keep} are for such contents alone. */
  takes(peer: BlobPeer, blob: Blob): boolean;
  /**
   * Waits for the node's turn. `there`: the node has the content under this name. `send`: the bastion must send it and then call
   * {@link keep}. `left`: the node waits no more.
   */
  bring(peer: BlobPeer, name: string, blob: Blob): Promise<"there" | "send" | "left">;
  /** Called after the bastion has sent the content, before the command that puts the content in its place. True: the node has all of it. */
  keep(peer: BlobPeer, name: string, blob: Blob): Promise<boolean>;
  /** The node waits for no content any more, and none is on its way. */
  leave(node: string): void;
  /** Takes over a connection that the session no longer needs. True: other nodes still read over it, and this transfer will close it. */
  takeOver(host: Host): boolean;
}
