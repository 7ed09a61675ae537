/** CRC-32C of single bytes (Castagnoli's polynomial, RFC 3720, appendix B.4, bits reversed). */
const table = Int32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
  return crc;
});

/**
 * CRC-32C of some bytes. Journals keep it, and not the CRC-32 of `node:zlib`: after an automatic rollback
 * the former build reads the journal that its successor wrote.
 */
export function crc32c(bytes: Uint8Array): number {
  let crc = -1;
  for (let at = 0; at < bytes.length; at++) crc = (crc >>> 8) ^ table[(crc ^ bytes[at]!) & 0xff]!;
  return ~crc >>> 0;
}
