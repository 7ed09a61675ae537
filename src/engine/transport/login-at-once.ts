import type { Client } from "ssh2";
import { innerOf } from "./inner-protocol.ts";

interface Inner {
  service?: (name: string) => void;
  _handlers?: { SERVICE_ACCEPT?: (protocol: unknown, name: string) => void };
}

/**
 * Lets the first authentication request leave in one flight with the request for the service that takes it: a server that
 * refuses the service ends the connection anyhow (RFC 4253, section 10). That saves a round trip. Only with servers that are
 * known to take both in order. The key's signature must not depend on the server's later messages (RSA's does, RFC 8308).
 * Must be called when the key exchange has ended. If ssh2 looks different, nothing is changed.
 */
export function logInAtOnce(client: Client): void {
  const inner = innerOf(client);
  if (inner?.ahead === undefined) return;
  const protocol = inner.protocol as unknown as Inner;
  const [request, handlers] = [protocol.service?.bind(protocol), protocol._handlers];
  const accept = handlers?.SERVICE_ACCEPT;
  if (!request || !handlers || !accept) return;
  protocol.service = (name) => {
    protocol.service = request;
    request(name);
    // The server's own word, when it comes, is no news.
    handlers.SERVICE_ACCEPT = () => undefined;
    accept(protocol, name);
  };
}
