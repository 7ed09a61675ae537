import { once } from "node:events";
import { createServer, type Server } from "node:net";

/**
 * Keeps a second updater of the same folder from starting; the kernel gives it back when the process ends, however it ends.
 * undefined: another one has it.
 */
export async function lockFolder(folder: string): Promise<Server | undefined> {
  // A name without a file (unix(7), abstract).
  const server = createServer((socket) => socket.destroy()).listen({
    path: `\0kcore-updater:${folder}`,
    exclusive: true,
  });
  try {
    await once(server, "listening");
    return server.unref();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EADDRINUSE") return undefined;
    throw error;
  }
}
