import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** Unpacks the one path of an export stream (src/runtime/nar.ts) under another root, with a reader of its own. */
export function unpackExport(stream: Buffer, root: string): void {
  let at = 8;
  const take = (): Buffer => {
    const size = Number(stream.readBigUInt64LE(at));
    const bytes = stream.subarray(at + 8, at + 8 + size);
    at += 8 + Math.ceil(size / 8) * 8;
    return bytes;
  };
  const expect = (...words: readonly string[]): void => {
    for (const word of words) {
      const found = take().toString();
      if (found !== word) throw new Error(`expected ${word}, found ${found.slice(0, 80)} at ${at}`);
    }
  };
  const entries: (() => void)[] = [];
  const node = (path: string): void => {
    expect("(", "type");
    const type = take().toString();
    if (type === "directory") {
      entries.push(() => mkdirSync(join(root, path), { recursive: true }));
      for (let word = take().toString(); word !== ")"; word = take().toString()) {
        expect("(", "name");
        const name = take().toString();
        expect("node");
        node(`${path}/${name}`);
        expect(")");
      }
    } else if (type === "symlink") {
      expect("target");
      const target = take().toString();
      entries.push(() => symlinkSync(target, join(root, path)));
      expect(")");
    } else {
      let word = take().toString();
      const executable = word === "executable";
      if (executable) {
        expect("");
        word = take().toString();
      }
      if (word !== "contents") throw new Error(`expected contents, found ${word}`);
      const content = take();
      entries.push(() => {
        writeFileSync(join(root, path), content);
        chmodSync(join(root, path), executable ? 0o555 : 0o444);
      });
      expect(")");
    }
  };
  // The store path comes behind the archive, so that the archive is read first and unpacked later.
  expect("nix-archive-1");
  node("");
  at += 8;
  const storePath = take().toString();
  const base = root;
  root = join(base, storePath);
  mkdirSync(dirname(root), { recursive: true });
  for (const lay of entries) lay();
}
