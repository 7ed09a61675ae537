/**
 * One word of POSIX sh that yields exactly `value` (POSIX.1-2017, XCU 2.2.2).
 * Plain words stay readable; everything else is single-quoted.
 * @throws RangeError when the value holds a NUL byte, which no shell word can carry.
 */
export function quote(value: string): string {
  if (value.includes("\0")) throw new RangeError("a shell word cannot hold a NUL byte");
  if (isPlainWord(value)) return value;
  return `'${value.replaceAll("'", String.raw`'\''`)}'`;
}

/** Whether sh reads the text as one literal word without quotes. */
export function isPlainWord(text: string): boolean {
  return /^[A-Za-z0-9_@%+:,./-]+$/.test(text);
}

/** As {@link quote}, for bytes that need not be UTF-8. */
export function quoteBytes(value: Uint8Array): Uint8Array {
  return Buffer.from(quote(Buffer.from(value).toString("latin1")), "latin1");
}
