import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { describeError, type Log } from "#api/log.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import type { LinkEvents, PeerLink } from "../replica/replica-ports.ts";
import { largestLine, LineReader } from "./line-reader.ts";

/** The unsent bytes above which a peer counts as not reading; more than the protocol's window allows. */
const backlogLimit = 8 * largestLine;

export interface LinkOptions {
  readonly socket: Duplex;
  readonly peer: string;
  readonly initiator: boolean;
  /** The bytes that arrived with the upgrade. */
  readonly head: Buffer;
  readonly log: Log;
  /** Hands the link to the replica, and returns its callbacks. */
  readonly connected: (link: PeerLink) => LinkEvents;
  readonly onBytes?: (direction: "in" | "out", bytes: number) => void;
  readonly onContact: () => void;
}

/** Opens a link to a peer on an authenticated stream: one line of JSON for each message, both ways. */
export function openLink({ socket, peer, initiator, head, log, connected, onBytes, onContact }: LinkOptions): void {
  const reader = new LineReader();
  let isOpen = true;
  const close = (reason: string): void => {
    if (!isOpen) return;
    isOpen = false;
    log.info("a replication stream ends", { peer, reason });
    // Written messages, such as a refusal, have 1 s to be sent.
    socket.end();
    setTimeout(() => socket.destroy(), 1_000).unref();
  };
  const events = connected({
    peer,
    initiator,
    ...omitUndefined({ remote: (socket as Partial<Socket>).remoteAddress }),
    send(message) {
      if (!isOpen) return;
      const line = `${JSON.stringify(message)}\n`;
      onBytes?.("out", Buffer.byteLength(line));
      socket.write(line);
      if (socket.writableLength > backlogLimit) {
        socket.destroy();
        close("the peer does not read");
      }
    },
    close,
  });
  const read = (chunk: Buffer): void => {
    if (!isOpen) return;
    onContact();
    onBytes?.("in", chunk.length);
    // Corked, so that all answers to one chunk are sent together and wake the peer once.
    socket.cork();
    try {
      reader.push(chunk, (value) => {
        if (isOpen) events.received(value);
      });
    } catch (error) {
      // A peer that breaks the framing is cut at once; the core checks the messages themselves (S-24).
      log.warn("a peer sent something that is no message", { peer, ...describeError(error) });
      close("malformed");
      socket.destroy();
    } finally {
      socket.uncork();
    }
  };
  socket.on("data", read);
  socket.on("error", (error) => {
    log.info("a replication stream broke", { peer, ...describeError(error) });
    socket.destroy();
  });
  socket.once("end", () => close("the peer ended it"));
  socket.once("close", () => {
    close("it was closed");
    events.closed();
  });
  if (head.length > 0) read(head);
}
