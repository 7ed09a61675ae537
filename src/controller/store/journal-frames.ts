/**
 * The frames of the journal. A frame has the records of one group commit: a head of fixed width, then the records as lines
 * of JSON, readable for `less` and `jq`. After a crash a frame is complete, or it was never acknowledged:
 *
 *     #LLLLLLLL CCCCCCCC IIIIIIIIIIIIII NNNNNN
 *     {"a":1}
 *     {"b":2}
 *
 * L: bytes of the lines; C: CRC-32C of everything behind C; I: index of the first record; N: number of records. All in hex.
 */
const headBytes = 41;
const summedFrom = 19;
const headPattern = /^#([0-9a-f]{8}) ([0-9a-f]{8}) ([0-9a-f]{14}) ([0-9a-f]{6})\n$/;
/** A head with all digits zero, to recognise the beginning of a head. */
const headShape = "#00000000 00000000 00000000000000 000000\n";
/** The smallest part of a write that a disk keeps or loses as a whole. */
const sectorBytes = 512;

export interface JournalFrame {
  /** Index of the first record. */
  readonly index: number;
  /** JSON texts. */
  readonly records: readonly string[];
  /** The offset behind the frame. */
  readonly end: number;
}

/**
 * Encodes a frame for `offset` of its file. Records must hold no line break: JSON.stringify without indentation makes none. If the
 * frame would end within one byte of a sector's edge, a blank is added: `isTorn` cannot tell whether a single zero byte is a missing
 * part of a sector or a damaged byte.
 */
export function encodeFrame(index: number, records: readonly string[], offset: number): Buffer {
  let body = records.join("\n");
  let length = records.length === 0 ? 0 : Buffer.byteLength(body) + 1;
  const beside = (offset + headBytes + length) % sectorBytes;
  if (length > 0) {
    const isBesideEdge = beside === 1 || beside === sectorBytes - 1;
    body += isBesideEdge ? " \n" : "\n";
    if (isBesideEdge) length++;
  }
  const frame = Buffer.allocUnsafe(headBytes + length);
  frame.write(`#${hex(length, 8)} 00000000 ${hex(index, 14)} ${hex(records.length, 6)}\n`, 0, "latin1");
  frame.write(body, headBytes, "utf8");
  frame.write(hex(crc32c(frame.subarray(summedFrom)), 8), 10, "latin1");
  return frame;
}

interface FrameHead {
  readonly length: number;
  readonly sum: number;
  readonly index: number;
  readonly count: number;
}

/** Parses the head at `offset`, without verifying the checksum; undefined if there is no head. */
export function headAt(bytes: Buffer, offset: number): FrameHead | undefined {
  const head = headPattern.exec(bytes.toString("latin1", offset, offset + headBytes));
  if (!head) return undefined;
  const [length = 0, sum = 0, index = 0, count = 0] = head.slice(1).map((digits) => Number.parseInt(digits, 16));
  return { length, sum, index, count };
}

/** Decodes the frame at `offset`, or says why there is none. */
export function decodeFrame(bytes: Buffer, offset: number): JournalFrame | { readonly damage: string } {
  if (offset + headBytes > bytes.length) return { damage: "the head of a frame is cut off" };
  const head = headAt(bytes, offset);
  if (!head) return { damage: "no head of a frame" };
  const { length, sum, index, count } = head;
  const end = offset + headBytes + length;
  if (end > bytes.length) return { damage: "a frame is cut off" };
  if (crc32c(bytes.subarray(offset + summedFrom, end)) !== sum) return { damage: "a frame's checksum is wrong" };
  const body = bytes.toString("utf8", offset + headBytes, end);
  const records = count === 0 ? [] : body.slice(0, -1).split("\n");
  if (records.length !== count) return { damage: "a frame's count of records is wrong" };
  return { index, records, end };
}

/** The offset of the next intact frame behind `offset`, if there is one. */
export function nextFrameAfter(bytes: Buffer, offset: number): number | undefined {
  for (let at = bytes.indexOf("#", offset + 1, "latin1"); at !== -1; at = bytes.indexOf("#", at + 1, "latin1")) {
    if (!("damage" in decodeFrame(bytes, at))) return at;
  }
  return undefined;
}

/**
 * Whether the bytes from `offset` on, which are no frame, may be a write that a power cut interrupted, and so was never acknowledged. Such
 * a write is cut short, or has sectors of zeros: the file's length reached the disk, and the data did not. No frame contains a zero
 * byte. Anything else was once complete, and has been damaged since (ADR 0507).
 */
export function isTorn(bytes: Buffer, offset: number): boolean {
  return isCutShort(bytes, offset) || hasMissingSector(bytes, offset);
}

/** Whether a head or its lines end too early. With all lines present it is damage, even if the head names a greater length. */
function isCutShort(bytes: Buffer, offset: number): boolean {
  const rest = bytes.length - offset;
  if (rest < headBytes) {
    const start = bytes.toString("latin1", offset);
    return headShape.startsWith(start.replaceAll(/[0-9a-f]/g, "0"));
  }
  const head = headAt(bytes, offset);
  if (!head || head.length <= rest - headBytes) return false;
  let lines = 0;
  for (let at = bytes.indexOf(0x0a, offset + headBytes); at !== -1; at = bytes.indexOf(0x0a, at + 1)) lines++;
  return lines < head.count;
}

/** Whether any sector, or its part from `offset` on, is all zeros; a part of one byte does not count (encodeFrame). */
export function hasMissingSector(bytes: Buffer, offset: number): boolean {
  for (let from = offset; from < bytes.length;) {
    const to = Math.min(bytes.length, (Math.floor(from / sectorBytes) + 1) * sectorBytes);
    const part = bytes.subarray(from, to);
    if (part.length > 1 && part.every((byte) => byte === 0)) return true;
    from = to;
  }
  return false;
}

function hex(value: number, width: number): string {
  return value.toString(16).padStart(width, "0");
}

/** CRC-32C of single bytes (Castagnoli's polynomial, RFC 3720, appendix B.4, bits reversed). */
const crcTable = Int32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
  return crc;
});

/**
 * CRC-32C of some bytes. Not replaced by the CRC-32 of `node:zlib`: after an automatic rollback the former build must read
 * the journal that its successor wrote.
 */
function crc32c(bytes: Uint8Array): number {
  let crc = -1;
  for (let at = 0; at < bytes.length; at++) crc = (crc >>> 8) ^ crcTable[(crc ^ bytes[at]!) & 0xff]!;
  return ~crc >>> 0;
}
