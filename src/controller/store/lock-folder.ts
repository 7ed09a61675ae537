import { createServer } from "node:net";
import { stat } from "node:fs/promises";
import { KcoreError } from "#errors/problem.ts";

/**
 * Makes sure that only one process uses a folder, until the returned function is called or the process dies in any
 * way: a socket in Linux's abstract namespace, which the kernel removes with its holder (unix(7)).
 * @throws KcoreError STORE_LOCKED
 */
export async function lockFolder(folder: string): Promise<() => Promise<void>> {
  const { dev, ino } = await stat(folder);
  const server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      const problem = {
        code: "STORE_LOCKED",
        message: `another controller uses ${folder}`,
        hint: "systemctl status kcore-controller",
      } as const;
      reject(error.code === "EADDRINUSE" ? new KcoreError(problem, { cause: error }) : error);
    });
    server.listen({ path: `\0kcore-store-${dev}-${ino}` }, resolve);
  });
  // A process that fails to start ends, and need not give the folder free first.
  server.unref();
  return () => new Promise((resolve) => server.close(() => resolve()));
}
