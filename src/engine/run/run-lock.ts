import { createHash } from "node:crypto";
import { createServer, type Server } from "node:net";
import { KcoreError } from "#errors/problem.ts";
import type { RunHeader } from "./run-folder.ts";

/**
 * Locks a run for this process, by an abstract socket (unix(7)) whose name only readers of the header can compute. The kernel releases it when
 * the process ends, however it ends; the returned function releases it before.
 * @throws KcoreError RUN_ALIVE when another process drives the run
 */
export async function lockRun({ id, nonce }: Pick<RunHeader, "id" | "nonce">): Promise<() => void> {
  const name = createHash("sha256").update(`kcore run ${nonce}`).digest("hex").slice(0, 40);
  const server = createServer((socket) => socket.destroy());
  await listen(server, `\0kcore-run-${name}`, id);
  server.unref();
  return () => server.close();
}

function listen(server: Server, path: string, id: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (cause: NodeJS.ErrnoException) =>
      reject(
        cause.code === "EADDRINUSE"
          ? new KcoreError(
              { code: "RUN_ALIVE", message: `run ${id} is still going on`, hint: `kcore runs attach ${id}` },
              { cause },
            )
          : cause,
      ),
    );
    server.listen(path, resolve);
  });
}
