import { formatSending } from "#base/units.ts";
import { uploadBundle } from "#api/bundle-transfer.ts";
import type { ApiClient } from "#api/client.ts";
import { exitCodes, KcoreError } from "#errors/problem.ts";
import type { FoundBundle } from "./bundle-file.ts";

/** Where it is told how far it is, and who may interrupt it. */
type Host = Pick<NodeJS.Process, "stderr" | "once" | "off">;

/**
 * Brings a bundle to a controller, and tells on stderr how far it is: one line that grows at a terminal, else one when it is there. Ctrl-C ends
 * that, and what came is kept there. @throws KcoreError INTERRUPTED, and as uploadBundle does
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
    // All of it is there already: nothing was brought.
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
    // It was interrupted by its last piece: nobody wants what follows.
    stop.signal.throwIfAborted();
  } finally {
    host.off("SIGINT", leave).off("SIGTERM", leave);
    if (isBegun && stderr.isTTY) stderr.write("\n");
  }
}
