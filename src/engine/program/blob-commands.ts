import type { Blob } from "#engine/step/blob.ts";
import { quote } from "#engine/step/quote.ts";
import { sha256Of } from "./segment.ts";

/** Bytes of a blob sent in one command; between two of them beats and stops get through. */
const part = 1 << 20;
/** A larger blob travels alone. */
const small = 1 << 16;

/**
 * The commands that bring a node the blobs it asked for, as texts and bytes to send one after the other. Small ones share a pack:
 * one sh text that writes them, which costs the node the same few processes however many they are. What is sensitive has a name
 * that proves nothing, and a NUL stands in no sh text: such blobs travel alone, as large ones do.
 */
export async function* blobCommands(
  blobs: readonly (readonly [name: string, blob: Blob])[],
): AsyncGenerator<string | Uint8Array> {
  let pack = "";
  for (const [name, blob] of blobs) {
    const bytes = await blob.read();
    if (blob.sensitive || bytes.length > small || bytes.includes(0)) {
      yield* alone(name, blob, bytes);
      continue;
    }
    // Latin-1 keeps every byte one character, so that quoting cannot change it.
    pack += `k_put ${name} ${quote(Buffer.from(bytes).toString("latin1"))}\n`;
    if (pack.length < part) continue;
    yield* packed(pack);
    pack = "";
  }
  if (pack !== "") yield* packed(pack);
}

function* packed(text: string): Generator<string | Uint8Array> {
  const bytes = Buffer.from(text, "latin1");
  yield `pack ${bytes.length} ${sha256Of(bytes)}\n`;
  yield bytes;
}

function* alone(name: string, { sha256 }: Blob, bytes: Uint8Array): Generator<string | Uint8Array> {
  for (let at = 0; at === 0 || at < bytes.length; at += part) {
    const piece = bytes.subarray(at, at + part);
    const last = at + part >= bytes.length;
    yield `blob ${name} ${piece.length} ${sha256Of(piece)} ${at} ${last ? "last" : "more"} ${last ? sha256 : "-"}\n`;
    yield piece;
  }
}
