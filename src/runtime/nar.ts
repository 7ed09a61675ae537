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
 * references, its deriver, no signature. Behind the last path of a stream stands `0`, which is not given here.
 */
export function exportOf(tree: Tree, storePath: string): Uint8Array[] {
  return [number(1), ...archive(tree), endOfExport(storePath)];
}

/** The bytes behind the archive in {@link exportOf}. */
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
