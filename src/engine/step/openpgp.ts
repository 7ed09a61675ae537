import { createHash } from "node:crypto";

/**
 * The fingerprints, in upper-case hex, of the primary keys in one ASCII-armoured block of OpenPGP public keys (RFC
 * 9580). Empty for any other text, and for a block with a private key or with a key of another version than 4 and 6.
 */
export function fingerprintsOf(armoured: string): readonly string[] {
  const [, body] =
    /^-----BEGIN PGP PUBLIC KEY BLOCK-----\n(?:[^\n:]+:[^\n]*\n)*\n((?:[A-Za-z0-9+/][A-Za-z0-9+/=]*\n)+)(?:=[A-Za-z0-9+/]{4}\n)?-----END PGP PUBLIC KEY BLOCK-----$/.exec(
      armoured.trim(),
    ) ?? [];
  const packets = body === undefined ? undefined : packetsOf(Buffer.from(body, "base64"));
  const isForeign = packets?.some(({ tag }) => tag === secretKey || tag === secretSubkey) ?? true;
  const primary = packets?.filter(({ tag }) => tag === publicKey).map(({ body: key }) => fingerprintOf(key)) ?? [];
  return isForeign || primary.includes("") ? [] : primary;
}

// Packet types of RFC 9580, 5.
const secretKey = 5;
const publicKey = 6;
const secretSubkey = 7;

interface Packet {
  readonly tag: number;
  readonly body: Buffer;
}

/**
 * The packets (RFC 9580, 4.2); undefined for malformed bytes, and for partial body lengths, which only data packets may
 * have.
 */
function packetsOf(bytes: Buffer): readonly Packet[] | undefined {
  const packets: Packet[] = [];
  for (let at = 0; at < bytes.length;) {
    const header = bytes[at] ?? 0;
    const length = (header & 0xc0) === 0xc0 ? newLength(bytes, at + 1) : oldLength(bytes, at + 1, header);
    if ((header & 0x80) === 0 || length === undefined || length.from + length.size > bytes.length) return undefined;
    const tag = header & 0x40 ? header & 0x3f : (header >> 2) & 0xf;
    at = length.from + length.size;
    packets.push({ tag, body: bytes.subarray(length.from, at) });
  }
  return packets;
}

interface Length {
  readonly from: number;
  readonly size: number;
}

function newLength(bytes: Buffer, at: number): Length | undefined {
  const [first = 0, second = 0] = bytes.subarray(at);
  if (first < 192) return { from: at + 1, size: first };
  if (first < 224) return { from: at + 2, size: ((first - 192) << 8) + second + 192 };
  return first === 255 && at + 5 <= bytes.length ? { from: at + 5, size: bytes.readUInt32BE(at + 1) } : undefined;
}

function oldLength(bytes: Buffer, at: number, header: number): Length | undefined {
  const width = 1 << (header & 3);
  return width > 4 || at + width > bytes.length ? undefined : { from: at + width, size: bytes.readUIntBE(at, width) };
}

/** The fingerprint of a key packet's body (RFC 9580, 5.5.4); empty for key versions other than 4 and 6. */
function fingerprintOf(key: Buffer): string {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(key.length);
  const hashed =
    key[0] === 4
      ? createHash("sha1").update(Buffer.of(0x99)).update(length.subarray(2)).update(key)
      : key[0] === 6
        ? createHash("sha256").update(Buffer.of(0x9b)).update(length).update(key)
        : undefined;
  return hashed?.digest("hex").toUpperCase() ?? "";
}
