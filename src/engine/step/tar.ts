const block = 512;
/** Bytes of a name in a header; a longer one is a member of its own in front (GNU format). */
const longestName = 100;

/** A member of a tar archive, of root and without a time; `flag` is its type: `0` a file, `2` a link, `5` a folder. */
export interface TarEntry {
  readonly name: string;
  readonly flag: string;
  readonly mode: number;
  readonly size: number;
  readonly target: string;
}

/** The bytes before a member's content. */
export function tarHeader(entry: TarEntry): Buffer {
  return Buffer.concat([longText(entry.target, "K"), longText(entry.name, "L"), headerBlock(entry)]);
}

/** The bytes behind a content of this size. */
export function tarPadding(size: number): Buffer {
  return Buffer.alloc((block - (size % block)) % block);
}

function longText(text: string, flag: string): Buffer {
  const bytes = Buffer.from(`${text}\0`);
  const size = bytes.length;
  if (size <= longestName + 1) return Buffer.alloc(0);
  const header = headerBlock({ name: "././@LongLink", flag, mode: 0, size, target: "" });
  return Buffer.concat([header, bytes, tarPadding(size)]);
}

function headerBlock({ name, flag, mode, size, target }: TarEntry): Buffer {
  const bytes = Buffer.alloc(block);
  const octal = (value: number, digits: number): string => `${value.toString(8).padStart(digits, "0")}\0`;
  Buffer.from(name).copy(bytes, 0, 0, longestName);
  bytes.write(octal(mode, 7) + octal(0, 7) + octal(0, 7) + octal(size, 11) + octal(0, 11) + " ".repeat(8) + flag, 100);
  Buffer.from(target).copy(bytes, 157, 0, longestName);
  bytes.write("ustar  \0", 257);
  const sum = bytes.reduce((total, byte) => total + byte, 0);
  bytes.write(octal(sum, 6), 148);
  return bytes;
}
