import type { ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import { longestTransferMs } from "#api/bundle-transfer.ts";
import { Busy, Refused } from "../cluster/refused.ts";
import type { BundleStore } from "./bundles.ts";

/** The most bundles that are sent concurrently, to one key and to all. */
const sendLimits = { ofKey: 2, ofAll: 32 } as const;
/** Errors of a client that disconnects. */
const disconnects: ReadonlySet<string> = new Set(["ERR_STREAM_PREMATURE_CLOSE", "ECONNRESET", "EPIPE"]);
const idText = /^([0-9a-f]{64})@(0|[1-9]\d{0,14})$/;

/** Sends bundles at each client's pace, within bounds for one client and for all. */
export function openBundleSender({
  store,
  stalledClientMs,
}: {
  readonly store: Pick<BundleStore, "open">;
  /** The time after which a client that reads nothing is cut. */
  readonly stalledClientMs: number;
}) {
  const underway = new Map<string, number>();
  let count = 0;
  return {
    /** Sends a bundle's bytes; `id`: `SHA256@OFFSET`. Resolves when all is sent or the client is gone. @throws Refused */
    async send(key: string, id: string, response: ServerResponse): Promise<void> {
      const [, sha256, from] = idText.exec(id) ?? [];
      if (sha256 === undefined) throw new Refused(400, "API_INVALID", "a bundle is asked for as SHA256@OFFSET");
      const ofKey = underway.get(key) ?? 0;
      if (ofKey >= sendLimits.ofKey || count >= sendLimits.ofAll)
        throw new Busy(503, "too many bundles are being sent", 5);
      underway.set(key, ofKey + 1);
      count++;
      try {
        await stream(await store.open(sha256), Number(from), response, stalledClientMs);
      } finally {
        count--;
        const others = (underway.get(key) ?? 1) - 1;
        if (others > 0) underway.set(key, others);
        else underway.delete(key);
      }
    },
  };
}

async function stream(
  { file, size }: Awaited<ReturnType<BundleStore["open"]>>,
  start: number,
  response: ServerResponse,
  stalledClientMs: number,
): Promise<void> {
  if (start > size) {
    await file.close();
    throw new Refused(400, "API_INVALID", `the bundle ends after ${size} bytes`);
  }
  const length = size - start;
  response.writeHead(200, { "content-type": "application/octet-stream", "content-length": length });
  response.setTimeout(stalledClientMs, () => response.destroy());
  const limit = setTimeout(() => response.destroy(), longestTransferMs(length)).unref();
  try {
    await pipeline(file.createReadStream({ start, highWaterMark: 256 * 1024 }), response);
  } catch (error) {
    // A client that disconnects is no failure of the controller.
    if (!disconnects.has((error as NodeJS.ErrnoException).code ?? "")) throw error;
  } finally {
    clearTimeout(limit);
  }
}
