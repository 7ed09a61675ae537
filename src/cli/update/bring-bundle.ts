import { uploadBundle } from "#api/bundle-transfer.ts";
import type { ApiClient } from "#api/client.ts";
import { formatSending } from "#base/units.ts";
import { exitCodes, KcoreError } from "#errors/problem.ts";
import type { FoundBundle } from "./bundles.ts";

/** The terminal that shows the progress, and the signals that interrupt it. */
type Host = Pick<NodeJS.Process, "stderr" | "once" | "off">;

/**
 * Brings a bundle to a controller, and shows the progress on stderr: at a terminal one line that grows, else one line at the end. The
 * controller keeps the received part after Ctrl-C. @throws KcoreError INTERRUPTED, and as uploadBundle does
 */
export async function bringBundle(
  client: ApiClient,
  source: FoundBundle,
  endpoint: string,
  host: Host = process,
): Promise<void> {
  const { stderr } = host;
  const { version, size } = source.bundle;
  const progressOf = (held: number): string => formatSending({ sent: held, total: size });
  const stop = new AbortController();
  let there: number | undefined;
  let isBegun = false;
  const onProgress = (held: number): void => {
    const isWhole = held >= size;
    there = held;
    // The controller already had all of the bundle.
    if (isWhole && !isBegun) return;
    isBegun = true;
    const line = `kcore ${version} to ${endpoint}: ${progressOf(held)}`;
    if (stderr.isTTY) stderr.write(`\r${line}`);
    else if (isWhole) stderr.write(`${line}\n`);
  };
  const leave = (): void => {
    const held = there === undefined ? "" : `${progressOf(there)} of kcore ${version} are at ${endpoint}, and `;
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
  host.once("SIGINT", leave).once("SIGTERM", leave);
  try {
    await uploadBundle(client, source, { onProgress, signal: stop.signal });
    // After Ctrl-C with the last piece, the update must not be handed over either.
    stop.signal.throwIfAborted();
  } finally {
    host.off("SIGINT", leave).off("SIGTERM", leave);
    if (isBegun && stderr.isTTY) stderr.write("\n");
  }
}
