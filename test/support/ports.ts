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
    if (!(await canListen({ path: `\0kcore-test-port-${port}` }))) continue;
    if (await canListen({ port, host: address }, true)) return port;
  }
}

/** Whether a server can listen at the address, which this process then keeps until its end, unless `isTrial`. */
async function canListen(
  address: { path: string } | { port: number; host: string },
  isTrial = false,
): Promise<boolean> {
  const server = createServer();
  const isFree = await new Promise<boolean>((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) =>
      error.code === "EADDRINUSE" ? resolve(false) : reject(error),
    );
    server.listen(address, () => resolve(true));
  });
  server.unref();
  if (isFree && isTrial) await new Promise((resolve) => server.close(resolve));
  return isFree;
}
