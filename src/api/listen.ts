import { once } from "node:events";
import type { Server } from "node:net";
import type { Endpoint } from "./endpoint.ts";

/** What every address of a machine is called: of IPv6, and with it of IPv4. */
const everywhere = "::";

/** Listens, and gives the port. `::` means both kinds of addresses; on a machine without IPv6 those of IPv4. @throws what listening throws */
export async function listenAt(server: Server, { host, port }: Endpoint): Promise<number> {
  const at = async (address: string): Promise<void> => {
    server.listen({ host: address, port });
    await once(server, "listening");
  };
  await at(host).catch((error: NodeJS.ErrnoException) => {
    if (host !== everywhere || !["EAFNOSUPPORT", "EADDRNOTAVAIL"].includes(error.code ?? "")) throw error;
    return at("0.0.0.0");
  });
  return (server.address() as { port: number }).port;
}

/** An address of IPv4 as it is written, also where it came in over a socket for both. */
export function plainAddress(address: string | undefined): string | undefined {
  return address?.replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/, "");
}
