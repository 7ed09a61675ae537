import { once } from "node:events";
import type { Server } from "node:net";
import type { ApiEndpoint } from "./endpoint.ts";

/** Every address of a machine, of IPv6 and of IPv4. */
const anyAddress = "::";

/** Listens, and returns the port. `::` means every address; on a machine without IPv6, every IPv4 address. @throws NodeJS.ErrnoException */
export async function listenAt(server: Server, { host, port }: ApiEndpoint): Promise<number> {
  const at = async (address: string): Promise<void> => {
    server.listen({ host: address, port });
    await once(server, "listening");
  };
  await at(host).catch((error: NodeJS.ErrnoException) => {
    if (host !== anyAddress || !["EAFNOSUPPORT", "EADDRNOTAVAIL"].includes(error.code ?? "")) throw error;
    return at("0.0.0.0");
  });
  return (server.address() as { port: number }).port;
}

/** Removes the prefix `::ffff:` that a socket for IPv6 and IPv4 puts before an IPv4 address. */
export function plainAddress(address: string | undefined): string | undefined {
  return address?.replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/, "");
}
