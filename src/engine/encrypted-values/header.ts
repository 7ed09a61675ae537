import { createHash } from "node:crypto";
import { KcoreError } from "#errors/problem.ts";
import { encryptedBytes } from "#engine/step/encrypted-value.ts";

/** kcore's stanza in an age file's header; other programs ignore stanzas that they do not know. */
export const STANZA = "kcore/place";

/** The properties of a sealed value that are readable without a key. The header's MAC vouches for them when the value is opened. */
export interface SealedHeader {
  /** The place that the value is bound to; absent if another program made the value, which is then bound to no place. */
  readonly place?: string;
  /** Fingerprints of the recipients; empty if another program made the value. */
  readonly fingerprints: readonly string[];
}

/** Reads the header of a sealed value. @throws KcoreError SECRET_UNREADABLE when it is cut off or no age file */
export function headerOf(text: string): SealedHeader {
  const bytes = encryptedBytes(text);
  const lines = bytes?.toString("latin1").split("\n") ?? [];
  const end = lines.findIndex((line) => line.startsWith("--- "));
  // The payload is a nonce and one chunk at least (age-encryption.org/v1, “Payload”).
  const headerSize = lines.slice(0, end + 1).reduce((size, line) => size + line.length + 1, 0);
  if (bytes === undefined || end === -1 || bytes.length < headerSize + 32)
    throw new KcoreError({
      code: "SECRET_UNREADABLE",
      message: "the sealed value is not whole: something of it is missing",
      hint: "take it from git as it was, or give it anew: kcore secrets set FILE PATH",
    });
  const own = lines.slice(0, end).find((line) => line.startsWith(`-> ${STANZA} `));
  const [, , place, ...fingerprints] = own?.split(" ") ?? [];
  return { ...(place !== undefined && { place }), fingerprints };
}

/** Names a recipient in a header: 66 bits of its SHA-256. */
export function fingerprintOf(recipient: string): string {
  return createHash("sha256").update(recipient).digest("base64url").slice(0, 11);
}
