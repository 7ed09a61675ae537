import { createSocket } from "node:dgram";
import { once } from "node:events";
import { isIP } from "node:net";
import { availableParallelism, hostname, totalmem } from "node:os";
import type { Endpoint } from "#api/endpoint.ts";
import type { Registration } from "#api/schemas.ts";
import type { AgentConfig } from "./config.ts";

/** What this machine tells when it registers. `endpoint` is the controller it is told to. */
export async function gatherRegistration({
  nodeId,
  config,
  endpoint,
  version,
}: {
  readonly nodeId: string;
  readonly config: AgentConfig;
  readonly endpoint: Endpoint;
  readonly version: string;
}): Promise<Registration> {
  return {
    nodeId,
    hostname: config.hostname ?? hostname(),
    address: config.address ?? (await addressTowards(endpoint)),
    cpu: availableParallelism(),
    memory: totalmem(),
    labels: { ...config.labels, dc: config.dcId },
    dc: config.dcId,
    roles: config.roles,
    version,
  };
}

/** The address this machine uses towards another; connecting a datagram socket sends nothing. */
async function addressTowards({ host, port }: Endpoint): Promise<string> {
  const socket = createSocket(isIP(host) === 6 ? "udp6" : "udp4");
  try {
    const connected = once(socket, "connect", { signal: AbortSignal.timeout(5_000) });
    socket.connect(port, host);
    await connected;
    return socket.address().address;
  } finally {
    socket.close();
  }
}
