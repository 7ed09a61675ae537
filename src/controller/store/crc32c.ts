/** The polynomial of CRC-32C (Castagnoli, RFC 3720, appendix B.4), bits reversed. */
const polynomial = 0x82f63b78;

/** Table 0 takes one byte; tables 1 to 7 take it from one to seven bytes further ahead, so that eight go at once. */
const tables = makeTables();

/** CRC-32C of some bytes; `before` continues the sum of what stood in front of them. */
export function crc32c(bytes: Uint8Array, before = 0): number {
  const [t0, t1, t2, t3, t4, t5, t6, t7] = tables as unknown as EightTables;
  let crc = ~before;
  let at = 0;
  for (; at + 8 <= bytes.length; at += 8) {
    crc =
      (t7[(crc ^ bytes[at]!) & 0xff]! ^
        t6[((crc >>> 8) ^ bytes[at + 1]!) & 0xff]! ^
        t5[((crc >>> 16) ^ bytes[at + 2]!) & 0xff]! ^
        t4[((crc >>> 24) ^ bytes[at + 3]!) & 0xff]! ^
        t3[bytes[at + 4]!]! ^
        t2[bytes[at + 5]!]! ^
        t1[bytes[at + 6]!]! ^
        t0[bytes[at + 7]!]!) |
      0;
  }
  for (; at < bytes.length; at++) crc = (crc >>> 8) ^ t0[(crc ^ bytes[at]!) & 0xff]!;
  return ~crc >>> 0;
}

type EightTables = readonly [
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
];

function makeTables(): readonly Int32Array[] {
  const first = Int32Array.from({ length: 256 }, (_, byte) => {
    let crc = byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ polynomial : crc >>> 1;
    return crc;
  });
  const all = [first];
  for (let ahead = 1; ahead < 8; ahead++) {
    const nearer = all[ahead - 1] as Int32Array;
    all.push(nearer.map((crc) => (crc >>> 8) ^ first[crc & 0xff]!));
  }
  return all;
}
