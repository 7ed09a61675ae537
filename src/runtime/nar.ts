import { createHash } from "node:crypto";

/** A file tree as Nix sees one: of a file's mode only “executable” counts, and nothing has a time. */
export type Tree =
  | { readonly type: "file"; readonly content: Uint8Array; readonly executable?: boolean }
  | { readonly type: "link"; readonly target: string }
  | { readonly type: "folder"; readonly entries: ReadonlyMap<string, Tree> };

/** The Nix archive (NAR) of a tree; the same tree always gives the same bytes. (Dolstra, thesis 2006, section 5.2) */
export function archive(tree: Tree): Uint8Array[] {
  return [...words("nix-archive-1"), ...node(tree)];
}

/**
 * One path without references in the stream that `nix-store --import` reads: `1`, the archive, a magic number, the path, its
 * references, its deriver, no signature. The `0` that ends a stream is not included.
 */
export function exportOf(tree: Tree, storePath: string): Uint8Array[] {
  return [number(1), ...archive(tree), endOfExport(storePath)];
}

/** The bytes after the archive in {@link exportOf}. */
export function endOfExport(storePath: string): Buffer {
  return Buffer.concat([number(0x4558494e), ...words(storePath), number(0), ...words(""), number(0)]);
}

function node(tree: Tree): Uint8Array[] {
  switch (tree.type) {
    case "file":
      return [
        ...words("(", "type", "regular", ...(tree.executable === true ? ["executable", ""] : []), "contents"),
        ...padded(tree.content),
        ...words(")"),
      ];
    case "link":
      return words("(", "type", "symlink", "target", tree.target, ")");
    case "folder":
      return [
        ...words("(", "type", "directory"),
        ...sorted(tree.entries).flatMap(([name, entry]) => member(name, entry)),
        ...words(")"),
      ];
  }
}

function member(name: string, entry: Tree): Uint8Array[] {
  return [...words("entry", "(", "name", name, "node"), ...node(entry), ...words(")")];
}

/** By bytes, as Nix sorts them. */
function sorted(entries: ReadonlyMap<string, Tree>): [string, Tree][] {
  return [...entries].toSorted(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
}

function words(...texts: readonly string[]): Uint8Array[] {
  return texts.flatMap((text) => padded(Buffer.from(text)));
}

/** Length, bytes, zeros up to a multiple of eight. */
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
