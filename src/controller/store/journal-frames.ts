import { crc32c } from "./crc32c.ts";

/**
 * How the journal's bytes are framed. One frame is what one group commit wrote: a head of fixed width, then its records
 * as lines of JSON. `less` and `jq` read it, and a frame is either whole or was never acknowledged:
 *
 *     #LLLLLLLL CCCCCCCC IIIIIIIIIIIIII NNNNNN
 *     {"a":1}
 *     {"b":2}
 *
 * L: bytes of the lines; C: CRC-32C of everything behind it; I: index of the first record; N: how many. All in hex.
 */
export const headBytes = 41;
const summedFrom = 19;
const headPattern = /^#([0-9a-f]{8}) ([0-9a-f]{8}) ([0-9a-f]{14}) ([0-9a-f]{6})\n$/;

export interface Frame {
  /** Index of the first record. */
  readonly index: number;
  /** JSON texts. */
  readonly records: readonly string[];
  /** Where the next frame begins. */
  readonly end: number;
}

/** Lines must hold no line break: JSON.stringify without indentation never makes one. */
export function encodeFrame(index: number, records: readonly string[]): Buffer {
  const body = records.length === 0 ? "" : `${records.join("\n")}\n`;
  const length = Buffer.byteLength(body);
  const frame = Buffer.allocUnsafe(headBytes + length);
  frame.write(`#${hex(length, 8)} 00000000 ${hex(index, 14)} ${hex(records.length, 6)}\n`, 0, "latin1");
  frame.write(body, headBytes, "utf8");
  frame.write(hex(crc32c(frame.subarray(summedFrom)), 8), 10, "latin1");
  return frame;
}

/** The frame at `offset`, or why there is none. */
export function decodeFrame(bytes: Buffer, offset: number): Frame | { readonly damage: string } {
  if (offset + headBytes > bytes.length) return { damage: "the head of a frame is cut off" };
  const head = headPattern.exec(bytes.toString("latin1", offset, offset + headBytes));
  if (!head) return { damage: "no head of a frame" };
  const [length, sum, index, count] = head.slice(1).map((digits) => Number.parseInt(digits, 16)) as [
    number,
    number,
    number,
    number,
  ];
  const end = offset + headBytes + length;
  if (end > bytes.length) return { damage: "a frame is cut off" };
  if (crc32c(bytes.subarray(offset + summedFrom, end)) !== sum) return { damage: "a frame's checksum is wrong" };
  const body = bytes.toString("utf8", offset + headBytes, end);
  const records = count === 0 ? [] : body.slice(0, -1).split("\n");
  if (records.length !== count) return { damage: "a frame's count of records is wrong" };
  return { index, records, end };
}

/** Whether any whole frame begins behind `offset`: then what is damaged there is not merely a torn tail. */
export function hasFrameAfter(bytes: Buffer, offset: number): boolean {
  for (let at = bytes.indexOf("#", offset + 1, "latin1"); at !== -1; at = bytes.indexOf("#", at + 1, "latin1")) {
    if (!("damage" in decodeFrame(bytes, at))) return true;
  }
  return false;
}

function hex(value: number, width: number): string {
  return value.toString(16).padStart(width, "0");
}
