import { uploadBundle } from "#api/bundle-transfer.ts";
import type { ApiClient } from "#api/client.ts";
import { runTask, type RunTasks } from "#base/tasks.ts";
import { formatBytes, formatSending } from "#base/units.ts";
import { exitCodes, KcoreError } from "#errors/problem.ts";
import type { FoundBundle } from "./bundles.ts";

/** Emits the signals that interrupt the transfer. */
type SignalSource = Pick<NodeJS.Process, "once" | "off">;

/**
 * Brings a bundle to a controller as a task, unless the controller has all of it. The controller keeps the received part after Ctrl-C.
 * @throws KcoreError INTERRUPTED, and as uploadBundle does
 */
export async function bringBundle(
  client: ApiClient,
  source: FoundBundle,
  endpoint: string,
  tasks: RunTasks,
  signals: SignalSource = process,
): Promise<void> {
  const { version, size, sha256 } = source.bundle;
  const stop = new AbortController();
  const { signal } = stop;
  let sentBytes: number | undefined;
  const leave = (): void => {
    const held =
      sentBytes === undefined
        ? ""
        : `${formatSending({ sent: sentBytes, total: size })} of kcore ${version} are at ${endpoint}, and `;
    stop.abort(
      new KcoreError(
        {
          code: "INTERRUPTED",
          message: `stopped: ${held}the update was not handed over`,
          hint: "the same command goes on from there",
        },
        { exitCode: exitCodes.interrupted },
      ),
    );
  };
  signals.once("SIGINT", leave).once("SIGTERM", leave);
  try {
    const { bundles } = await client.call("listBundles", {}, { signal });
    if (!bundles.some((one) => one.sha256 === sha256 && one.whole))
      await runTask(
        tasks,
        `bringing kcore ${version} to ${endpoint}`,
        (say) =>
          uploadBundle(client, source, {
            signal,
            onProgress: (bytes) => say({ bytes: (sentBytes = bytes), total: size }),
          }),
        () => formatBytes(size),
      );
    // Ctrl-C during the last piece must still keep the update from being handed over.
    signal.throwIfAborted();
  } finally {
    signals.off("SIGINT", leave).off("SIGTERM", leave);
  }
}
