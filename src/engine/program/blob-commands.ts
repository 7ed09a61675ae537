import type { Blob } from "#engine/step/blob.ts";
import { quoteBytes } from "#base/quote.ts";
import { nonceLine, type RunVariables } from "./bootstrap.ts";
import { sha256OfBytes } from "./segment.ts";

/** Bytes of a blob or of texts sent in one command; between two of them beats and stops get through. */
const partLimit = 1 << 20;
/** The same while the node takes each part within a second: each part costs it a process. */
const fastPartLimit = 4 << 20;
/**
 * Most bytes of a content that travels as text. A shell holds a text in memory, and cannot hold a NUL, so larger contents and
 * binary ones are sent as they are.
 */
const textLimit = 64 << 10;
/** The command that puts all earlier blobs in their places. */
export const placeBlobsCommand = "blobs\n";

/**
 * The commands that bring blobs to the follower. The caller sends each command before it asks for the next; a beat may
 * come between two of them. The shell writes small texts itself, many by one command. A large blob comes in parts, its
 * hash is checked, and `begin` is called before the first part.
 */
export async function* blobCommands(
  run: Pick<RunVariables, "nonce">,
  blobs: ReadonlyMap<string, Blob>,
  begin: (large: Blob) => void = () => undefined,
  now: () => number = () => performance.now(),
): AsyncGenerator<string | Uint8Array> {
  let texts: Uint8Array[] = [];
  let waiting = 0;
  const textsCommand = (): Uint8Array => {
    const bytes = Buffer.concat(texts);
    [texts, waiting] = [[], 0];
    return Buffer.concat([Buffer.from(`texts ${bytes.length}\n`), bytes, Buffer.from(nonceLine(run))]);
  };
  for (const [name, blob] of blobs) {
    const bytes = await blob.read();
    const assigned = blob.form === "assignment";
    if (assigned || (bytes.length <= textLimit && !bytes.includes(0) && sha256OfBytes(bytes) === blob.sha256)) {
      const text = assigned ? Buffer.concat([Buffer.from("b_text="), quoteBytes(bytes)]) : bytes;
      texts.push(Buffer.from(`k_put ${name} `), quoteBytes(text), Buffer.from("\n"));
      waiting += text.length;
      if (waiting > partLimit) yield textsCommand();
      continue;
    }
    begin(blob);
    let limit = partLimit;
    for (let at = 0; at < bytes.length;) {
      const part = bytes.subarray(at, at + limit);
      const since = now();
      yield Buffer.concat([Buffer.from(`part ${name} ${part.length} ${at}\n`), part, Buffer.from(nonceLine(run))]);
      limit = now() - since < 1_000 ? Math.min(2 * limit, fastPartLimit) : partLimit;
      at += part.length;
    }
    yield `sum ${name} ${blob.sha256}\n`;
  }
  if (texts.length > 0) yield textsCommand();
  if (blobs.size > 0) yield placeBlobsCommand;
}
