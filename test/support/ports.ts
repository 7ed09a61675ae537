import { randomInt } from "node:crypto";
import { createServer } from "node:net";

/**
 * A TCP port that is free on the address, and given to no other process that asks here until this one ends. Not one that the kernel gives to
 * whom asks for any (32768 and up, ip(7)): tests that run beside it would get it in the meantime, for a connection if not to listen.
 */
export async function freePort(address = "0.0.0.0"): Promise<number> {
  for (;;) {
    const port = randomInt(10_000, 32_000);
    // A name of the network's, as a port is: the kernel takes it back with the process, however that ends.
    if (!(await listens({ path: `\0kcore-test-port-${port}` }))) continue;
    if (await listens({ port, host: address }, true)) return port;
  }
}

/** Whether one can listen there; this process keeps the place, unless it is only tried. */
async function listens(place: { path: string } | { port: number; host: string }, isTried = false): Promise<boolean> {
  const server = createServer();
  const isFree = await new Promise<boolean>((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) =>
      error.code === "EADDRINUSE" ? resolve(false) : reject(error),
    );
    server.listen(place, () => resolve(true));
  });
  server.unref();
  if (isFree && isTried) await new Promise((resolve) => server.close(resolve));
  return isFree;
}
