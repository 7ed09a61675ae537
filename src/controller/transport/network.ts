import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Credentials } from "#api/client.ts";
import { parseEndpoint } from "#api/endpoint.ts";
import { describeError, type Log } from "#api/log.ts";
import type { DialTarget } from "../replica/replica-ports.ts";
import type { Replica } from "../replica/create-replica.ts";
import type { BastionCas } from "#pki/chain.ts";
import { dialController, DialRefused } from "./dial.ts";
import { openLink } from "./open-link.ts";

/** The replication streams of one controller, dialled and accepted ones. */
export type ReplicationNetwork = ReturnType<typeof openNetwork>;

export interface NetworkOptions {
  readonly controllerId: string;
  readonly cluster: string;
  readonly bastion: BastionCas;
  readonly credentials: () => Credentials;
  /** The key that must answer at an address that is dialled without an id; undefined: any controller's key of the cluster's CA. */
  readonly keyAt: (address: string) => string | undefined;
  readonly log: Log;
  readonly clock: () => number;
}

/** The replica that gets the links, and the membership that accepts them. */
export interface LinkReceiver extends Pick<Replica, "connected" | "dialFailed"> {
  /** `host:port` of a registered controller. */
  readonly addressOf: (id: string) => string | undefined;
  /** Whether a peer with this key is accepted; while joining, every peer of the cluster's CA is. */
  readonly isWelcome: (id: string, key: string) => boolean;
  readonly onBytes: (direction: "in" | "out", bytes: number) => void;
}

export function openNetwork(options: NetworkOptions) {
  const { controllerId, cluster, bastion, credentials, keyAt, log, clock } = options;
  const streams = new Map<Duplex, { readonly peer: string; readonly key: string }>();
  const contacts = new Map<string, number>();
  const failures = new Map<string, string>();
  let attached: LinkReceiver | undefined;
  let attach: (receiver: LinkReceiver) => void = () => undefined;
  const whenAttached = new Promise<LinkReceiver>((resolve) => (attach = resolve));
  let isClosed = false;

  const open = (peer: string, key: string, socket: Duplex, head: Buffer, initiator: boolean): void => {
    if (!attached || isClosed) return void socket.destroy();
    streams.set(socket, { peer, key });
    socket.once("close", () => streams.delete(socket));
    failures.delete(peer);
    // Not logged for a stream to this controller's own address: it only looks for a duplicate, which the alarm TWO_COPIES reports.
    const linkLog = peer === controllerId ? { ...log, info: () => undefined } : log;
    linkLog.info("a replication stream begins", { peer, initiator });
    const { connected, onBytes } = attached;
    const onContact = (): void => void contacts.set(peer, clock());
    openLink({ socket, peer, initiator, head, log: linkLog, connected, onBytes, onContact });
  };
  const dial = async (target: DialTarget, timeoutMs: number): Promise<void> => {
    const { addressOf, isWelcome } = await whenAttached;
    const address = "id" in target ? addressOf(target.id) : target.address;
    if (address === undefined) throw new Error("its address is not known yet");
    const answered = await dialController({
      endpoint: parseEndpoint(address),
      credentials: credentials(),
      cluster,
      bastion,
      timeoutMs,
    });
    const refuse = (reason: string): never => {
      answered.socket.destroy();
      throw new DialRefused("us", "NOT_REGISTERED", reason);
    };
    if ("id" in target && answered.id !== target.id) refuse(`at ${address} answers ${answered.id}`);
    if ("address" in target && (keyAt(address) ?? answered.key) !== answered.key)
      refuse(`at ${address} answers ${answered.id} with another key than the one of the sponsor`);
    const isOwnAddress = "id" in target && target.id === controllerId;
    if (answered.id === controllerId && !isOwnAddress) refuse(`${address} is this controller itself`);
    if (!isWelcome(answered.id, answered.key)) refuse(`${answered.id} shows a key that is not registered`);
    open(answered.id, answered.key, answered.socket, answered.head, true);
  };
  return {
    /** Connects the network to the replica. Before this call no peer is accepted, and dials wait. */
    attach(receiver: LinkReceiver): void {
      attached = receiver;
      attach(receiver);
    },
    /** Opens a link on a stream that the API server has accepted. */
    accept: (peer: string, key: string, socket: Duplex, head: Buffer): void => {
      (socket as Socket).setNoDelay(true);
      (socket as Socket).setTimeout(0);
      open(peer, key, socket, head, false);
    },
    net: {
      dial(target: DialTarget, timeoutMs: number): void {
        dial(target, timeoutMs).catch((error: unknown) => {
          // An unreachable peer is dialled every few seconds: each reason is logged once.
          const who = "id" in target ? target.id : target.address;
          const { error: reason } = describeError(error);
          // Not logged for this controller's own address, which may be unreachable from its machine.
          if (who !== controllerId && failures.get(who) !== String(reason))
            log.warn("a controller cannot be reached", { peer: who, reason });
          failures.set(who, String(reason));
          if (!isClosed) attached?.dialFailed(target, error instanceof DialRefused ? error : undefined);
        });
      },
    },
    /** Closes the streams of peers that are not accepted any more. */
    cut(isStill: (peer: string, key: string) => boolean): void {
      for (const [socket, { peer, key }] of streams) {
        if (isStill(peer, key)) continue;
        log.warn("a replication stream is cut: its key is not welcome any more", { peer });
        socket.destroy();
      }
    },
    /** The time of the last bytes from a peer, ms since 1970; 0: never. */
    lastContact: (peer: string): number => contacts.get(peer) ?? 0,
    close(): void {
      isClosed = true;
      for (const socket of streams.keys()) socket.destroy();
    },
  };
}
