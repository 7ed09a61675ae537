import { createHash } from "node:crypto";

/** A file tree as Nix sees it: without times, and of modes with “executable” alone. */
export type Tree =
  | { readonly type: "file"; readonly content: Uint8Array; readonly executable?: boolean }
  | { readonly type: "link"; readonly target: string }
  | { readonly type: "folder"; readonly entries: ReadonlyMap<string, Tree> };

/** The Nix archive (NAR) of a tree; the same tree always gives the same bytes. (Dolstra, thesis 2006, section 5.2) */
export function archive(tree: Tree): Uint8Array[] {
  return [...strings("nix-archive-1"), ...encodeTree(tree)];
}

/**
 * A path without references, as part of the stream that `nix-store --import` reads: `1`, the archive, a magic number, the path, its
 * references, its deriver, no signature. The `0` that ends the stream is left out.
 */
export function exportOf(tree: Tree, storePath: string): Uint8Array[] {
  return [number(1), ...archive(tree), endOfExport(storePath)];
}

/** The bytes that follow the archive in {@link exportOf}. */
export function endOfExport(storePath: string): Buffer {
  return Buffer.concat([number(0x4558494e), ...strings(storePath), number(0), ...strings(""), number(0)]);
}

function encodeTree(tree: Tree): Uint8Array[] {
  switch (tree.type) {
    case "file":
      return [
        ...strings("(", "type", "regular", ...(tree.executable === true ? ["executable", ""] : []), "contents"),
        ...padded(tree.content),
        ...strings(")"),
      ];
    case "link":
      return strings("(", "type", "symlink", "target", tree.target, ")");
    case "folder":
      return [
        ...strings("(", "type", "directory"),
        ...sorted(tree.entries).flatMap(([name, entry]) => encodeEntry(name, entry)),
        ...strings(")"),
      ];
  }
}

function encodeEntry(name: string, entry: Tree): Uint8Array[] {
  return [...strings("entry", "(", "name", name, "node"), ...encodeTree(entry), ...strings(")")];
}

/** A folder's entries ordered by the bytes of their names, as in Nix. */
function sorted(entries: ReadonlyMap<string, Tree>): [string, Tree][] {
  return [...entries].toSorted(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
}

/** Texts as the archive has them. */
function strings(...texts: readonly string[]): Uint8Array[] {
  return texts.flatMap((text) => padded(Buffer.from(text)));
}

/** The length, the bytes, and zeros up to a multiple of eight. */
function padded(bytes: Uint8Array): Uint8Array[] {
  return [number(bytes.length), bytes, new Uint8Array((8 - (bytes.length % 8)) % 8)];
}

function number(value: number): Uint8Array {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}

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
