import { createServer, type AddressInfo } from "node:net";

/** A TCP port of the loopback address that was free a moment ago. */
export async function freePort(address = "127.0.0.1"): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, address, resolve);
  });
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
