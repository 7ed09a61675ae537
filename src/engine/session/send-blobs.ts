import type { Blob } from "#engine/step/blob.ts";
import { sha256Of } from "#engine/program/segment.ts";
import type { Link } from "./link.ts";

/** Bytes of a blob sent in one command; between two of them beats and stops get through. */
const partSize = 1 << 20;

/** Answers a runner's question for blobs. For a name that was never offered the node gets nothing. */
export async function sendBlobs(
  link: Link,
  names: readonly string[],
  offered: ReadonlyMap<string, Blob>,
): Promise<void> {
  for (const name of names) {
    const blob = offered.get(name);
    if (!blob) continue;
    const bytes = await blob.read();
    for (let at = 0; at === 0 || at < bytes.length; at += partSize) {
      const part = bytes.subarray(at, at + partSize);
      const isLast = at + partSize >= bytes.length;
      const end = isLast ? `last ${blob.sha256}` : "more -";
      await link.send(`blob ${name} ${part.length} ${sha256Of(part)} ${at} ${end}\n`);
      await link.send(part);
    }
  }
}
