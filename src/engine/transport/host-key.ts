import { createHash } from "node:crypto";

/** A host's public key as it travels and as known_hosts(5) writes it. */
export interface HostKey {
  /** `ssh-ed25519`, `ecdsa-sha2-nistp256`, `ssh-rsa` … */
  readonly type: string;
  /** The key blob (RFC 4253, section 6.6) in base64. */
  readonly key: string;
  /** `SHA256:` and the blob's digest in base64 without padding, as `ssh-keygen -l` prints it. */
  readonly fingerprint: string;
}

/** The trusted and the revoked keys of a host. */
export interface TrustedKeys {
  readonly keys: readonly HostKey[];
  /** Marked @revoked: never accepted, even if another file trusts them. */
  readonly revoked: readonly HostKey[];
  /** Where the keys come from, for messages: `the roster`, or a file's path. */
  readonly source: string;
  /** Lines that were not understood, with the reason; shown when the key is unknown. */
  readonly ignored: readonly string[];
}

export type HostKeyVerdict = "trusted" | "unknown" | "changed" | "revoked";

/** The key in a blob. Undefined when the bytes are no key blob. */
export function hostKeyOf(blob: Uint8Array): HostKey | undefined {
  const bytes = Buffer.from(blob.buffer, blob.byteOffset, blob.byteLength);
  if (bytes.length < 5) return undefined;
  const length = bytes.readUInt32BE(0);
  if (length === 0 || length > 64 || bytes.length <= 4 + length) return undefined;
  const type = bytes.toString("latin1", 4, 4 + length);
  if (!/^[a-z0-9@.-]+$/.test(type)) return undefined;
  const digest = createHash("sha256").update(bytes).digest("base64").replace(/=+$/, "");
  return { type, key: bytes.toString("base64"), fingerprint: `SHA256:${digest}` };
}

/** A key written as `TYPE BASE64 [comment]`. Undefined when it is none, or when the blob is of another type. */
export function parseHostKey(text: string): HostKey | undefined {
  const [type, base64] = text.trim().split(/\s+/);
  if (type === undefined || base64 === undefined || !/^[A-Za-z0-9+/]+={0,2}$/.test(base64)) return undefined;
  const key = hostKeyOf(Buffer.from(base64, "base64"));
  return key?.type === type ? key : undefined;
}

/** Whether a key that a host presents may be believed. */
export function judgeHostKey(presented: HostKey, trusted: TrustedKeys): HostKeyVerdict {
  if (trusted.revoked.some(({ key }) => key === presented.key)) return "revoked";
  if (trusted.keys.some(({ key }) => key === presented.key)) return "trusted";
  return trusted.keys.length === 0 ? "unknown" : "changed";
}

/** Signature algorithms we accept for each type of host key; never SHA-1 (RFC 8332). */
const algorithmsOfType: ReadonlyMap<string, readonly string[]> = new Map([
  ["ssh-ed25519", ["ssh-ed25519"]],
  ["ecdsa-sha2-nistp256", ["ecdsa-sha2-nistp256"]],
  ["ecdsa-sha2-nistp384", ["ecdsa-sha2-nistp384"]],
  ["ecdsa-sha2-nistp521", ["ecdsa-sha2-nistp521"]],
  ["ssh-rsa", ["rsa-sha2-512", "rsa-sha2-256"]],
]);

/**
 * The algorithms to offer: those of the trusted keys first, since the server then presents the key we know, and the
 * others after them. So a reinstalled host shows its new key, and the message can name both.
 */
export function hostKeyAlgorithms(trusted: readonly HostKey[]): string[] {
  const known = trusted.flatMap(({ type }) => algorithmsOfType.get(type) ?? []);
  return [...new Set([...known, ...[...algorithmsOfType.values()].flat()])];
}
