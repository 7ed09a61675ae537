import { randomInt } from "node:crypto";
import { createServer } from "node:net";

/**
 * A TCP port that is free on the address, and that no other caller gets until this process ends. It is below 32768: the kernel gives higher
 * ports (ip(7)) to connections of tests that run beside this one.
 */
export async function freePort(address = "0.0.0.0"): Promise<number> {
  for (;;) {
    const port = randomInt(10_000, 32_000);
    // An abstract socket, like a port, belongs to the network namespace, and the kernel frees it with the process.
    if (!(await listens({ path: `\0kcore-test-port-${port}` }))) continue;
    if (await listens({ port, host: address }, true)) return port;
  }
}

/** Whether a server can listen there; this process keeps the place unless `isTried`. */
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
