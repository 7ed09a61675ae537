import { createHash } from "node:crypto";

const alphabet = "0123456789abcdfghijklmnpqrsvwxyz";

/** Nix's base 32: its own alphabet, the last bits first. */
export function base32(bytes: Uint8Array): string {
  const digits = Math.ceil((bytes.length * 8) / 5);
  return Array.from({ length: digits }, (_, index) => {
    const bit = (digits - 1 - index) * 5;
    const byte = Math.floor(bit / 8);
    const pair = (bytes[byte] ?? 0) | ((bytes[byte + 1] ?? 0) << 8);
    return alphabet.charAt((pair >> (bit % 8)) & 31);
  }).join("");
}

/**
 * The store path of a tree without references, as `nix-store --add` names it: it follows from the archive's SHA-256 and
 * the name alone. (Nix manual, “Store path calculation”; type `source`.)
 */
export function storePathOf(name: string, narSha256: Uint8Array): string {
  const text = `source:sha256:${Buffer.from(narSha256).toString("hex")}:/nix/store:${name}`;
  const hash = createHash("sha256").update(text).digest();
  const folded = new Uint8Array(20);
  hash.forEach((byte, index) => (folded[index % 20] = (folded[index % 20] ?? 0) ^ byte));
  return `/nix/store/${base32(folded)}-${name}`;
}

/** A NAR hash as `nix-store -q --hash` prints it. */
export function narHashOf(narSha256: Uint8Array): string {
  return `sha256:${base32(narSha256)}`;
}
