import type { Duplex } from "node:stream";
import ssh2 from "ssh2";
import { HostUnreachable, messageOf } from "./host-problems.ts";
import { hostKeyOf, type HostKey } from "./host-key.ts";
import type { Endpoint } from "./host.ts";
import { safeAlgorithms } from "./ssh-algorithms.ts";

/**
 * The host key of the server at the other end of `socket`. Waits for the end of the key exchange, in which the server
 * signs with that key, and leaves before authentication: no user name is sent.
 * @throws KcoreError HOST_UNREACHABLE; the reason of an aborted `signal`
 */
export async function scanHostKey({ name, user }: Endpoint, socket: Duplex, signal: AbortSignal): Promise<HostKey> {
  const client = new ssh2.Client();
  const { promise, resolve, reject } = Promise.withResolvers<HostKey>();
  promise.catch(() => undefined);
  const onAbort = () => reject(signal.reason as Error);
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  let presented: HostKey | undefined;
  client.on("error", reject);
  client.on("close", () => reject(new Error("it closed the connection")));
  client.once("handshake", () => {
    // At once, in the same turn: ssh2 asks for the authentication service right after this event.
    socket.destroy();
    if (presented) resolve(presented);
  });
  try {
    client.connect({
      sock: socket,
      username: user,
      readyTimeout: 0,
      algorithms: safeAlgorithms([]),
      hostVerifier: (blob: Buffer) => (presented = hostKeyOf(blob)) !== undefined,
    });
    return await promise;
  } catch (error) {
    signal.throwIfAborted();
    throw new HostUnreachable("handshake", { message: `${name} shows no host key: ${messageOf(error)}` }, error);
  } finally {
    signal.removeEventListener("abort", onAbort);
    socket.destroy();
    client.destroy();
  }
}
