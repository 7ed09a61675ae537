import { randomInt } from "node:crypto";
import { createServer } from "node:net";

/**
 * A TCP port that was free on the address a moment ago. Not one that the kernel gives to whom asks for any (32768 and up, ip(7)): tests
 * that run beside it would get it in the meantime, for a connection if not to listen.
 */
export async function freePort(address = "0.0.0.0"): Promise<number> {
  for (;;) {
    const port = randomInt(10_000, 32_000);
    const server = createServer();
    const isFree = await new Promise<boolean>((resolve, reject) => {
      server.once("error", (error: NodeJS.ErrnoException) =>
        error.code === "EADDRINUSE" ? resolve(false) : reject(error),
      );
      server.listen(port, address, () => resolve(true));
    });
    if (!isFree) continue;
    await new Promise((resolve) => server.close(resolve));
    return port;
  }
}
