import type { Client, ClientChannel } from "ssh2";
import { innerOf } from "./ssh2-internals.ts";

/** A started command; `rest` is the part of its input that is still to be written. */
export interface Started {
  readonly stream: ClientChannel;
  readonly rest: Uint8Array | undefined;
}

export interface EarlyExec {
  exec(
    command: string,
    input: Uint8Array | string | undefined,
    done: (error: Error | undefined, started?: Started) => void,
  ): void;
  /** To be called before a channel of another kind is opened: the next command's channel is then not the connection's first. */
  otherChannel(): void;
}

const packetLimit = 32 * 1024 - 1024;

/**
 * Starts commands. For the first one of a connection, channel open, exec request and input leave together instead of one round trip each.
 * This needs a server that numbers the first channel 0 and takes requests in order (OpenSSH, dropbear). Any other server, any later
 * channel, and an unknown ssh2 get them one after the other, through ssh2's public interface.
 */
export function createEarlyExec(client: Client): EarlyExec {
  let first = true;
  const oneByOne: EarlyExec["exec"] = (command, input, done) => {
    const rest = input === undefined ? undefined : Buffer.from(input);
    client.exec(command, (error, stream) => (error ? done(error) : done(undefined, { stream, rest })));
  };
  return {
    otherChannel: () => {
      first = false;
    },
    exec(command, input, done) {
      const inner = first ? innerOf(client) : undefined;
      const ahead = inner?.ahead;
      first = false;
      if (!inner || ahead === undefined) return oneByOne(command, input, done);

      const { protocol } = inner;
      const bytes = Buffer.from(input ?? "");
      const sent = Math.min(bytes.length, ahead);
      const request = protocol.exec.bind(protocol);
      protocol.exec = (channel, text, wantReply) => {
        // ssh2 makes its own request once the channel is confirmed: it is dropped, since channel 0 has got the early one.
        protocol.exec = request;
        if (channel !== 0) client.destroy();
        else if (text !== command) request(channel, text, wantReply);
      };
      client.exec(command, (error, stream) => {
        if (error) {
          protocol.exec = request;
          return done(error);
        }
        const { outgoing } = stream as unknown as { outgoing: { window: number } };
        outgoing.window = Math.max(0, outgoing.window - sent);
        done(undefined, { stream, rest: sent < bytes.length ? bytes.subarray(sent) : undefined });
      });
      request(0, command, true);
      for (let at = 0; at < sent; at += packetLimit)
        protocol.channelData(0, bytes.subarray(at, Math.min(sent, at + packetLimit)));
    },
  };
}
