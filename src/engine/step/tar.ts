const block = 512;
/** Bytes of a name in a header; a longer one is a member of its own in front (GNU format). */
const longestName = 100;
const flags = { file: "0", folder: "5", link: "2" };

/** A member of a tar archive, of root and without a time. `size`: bytes of a file's content; `target`: of a link. */
export interface TarEntry {
  readonly name: string;
  readonly type: keyof typeof flags;
  readonly mode: number;
  readonly size: number;
  readonly target: string;
}

/** The bytes before a member's content. */
export function tarHeader({ type, ...entry }: TarEntry): Buffer {
  const long = [longText(entry.target, "K"), longText(entry.name, "L")];
  return Buffer.concat([...long, headerBlock({ ...entry, flag: flags[type] })]);
}

/** The bytes behind a content of this size. */
export function tarPadding(size: number): Buffer {
  return Buffer.alloc((block - (size % block)) % block);
}

function longText(text: string, flag: string): Buffer {
  const bytes = Buffer.from(`${text}\0`);
  const size = bytes.length;
  if (size <= longestName + 1) return Buffer.alloc(0);
  return Buffer.concat([
    headerBlock({ name: "././@LongLink", flag, mode: 0, size, target: "" }),
    bytes,
    tarPadding(size),
  ]);
}

function headerBlock({ name, flag, mode, size, target }: Omit<TarEntry, "type"> & { readonly flag: string }): Buffer {
  const bytes = Buffer.alloc(block);
  const fields = [mode, 0, 0].map((value) => octal(value, 7)).concat(octal(size, 11), octal(0, 11), " ".repeat(7));
  Buffer.from(name).copy(bytes, 0, 0, longestName);
  bytes.write(`${fields.join("\0")} ${flag}`, longestName);
  Buffer.from(target).copy(bytes, 157, 0, longestName);
  bytes.write("ustar  \0", 257);
  const sum = bytes.reduce((total, byte) => total + byte, 0);
  bytes.write(`${octal(sum, 6)}\0 `, 148);
  return bytes;
}

function octal(value: number, digits: number): string {
  return value.toString(8).padStart(digits, "0");
}
