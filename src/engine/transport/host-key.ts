import { createHash } from "node:crypto";
import type { KcoreError } from "#errors/problem.ts";
import { hostFailure } from "./host-problems.ts";

/** A host's public key as it travels and as known_hosts writes it. */
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

/** Whether a key that a host presents is trusted, by its fingerprint: ssh(1) prints no more of the key. */
export function hostKeyTrust(
  presented: Pick<HostKey, "fingerprint">,
  trusted: TrustedKeys,
): "trusted" | "unknown" | "changed" | "revoked" {
  if (trusted.revoked.some(({ fingerprint }) => fingerprint === presented.fingerprint)) return "revoked";
  if (trusted.keys.some(({ fingerprint }) => fingerprint === presented.fingerprint)) return "trusted";
  return trusted.keys.length === 0 ? "unknown" : "changed";
}

/** The error for a host key that is not accepted, with the keys for the operator to compare; undefined: it is accepted (S-1, F-23). */
export function hostKeyProblem(
  { name, address, port }: { readonly name: string; readonly address: string; readonly port: number },
  presented: Pick<HostKey, "type" | "fingerprint">,
  trusted: TrustedKeys,
): KcoreError | undefined {
  const where = `${name} (${address} port ${port})`;
  const shown = `${presented.fingerprint} (${presented.type})`;
  switch (hostKeyTrust(presented, trusted)) {
    case "trusted":
      return undefined;
    case "unknown":
      return hostFailure({
        code: "HOST_KEY_UNKNOWN",
        message: `the host key of ${where} is not known: it presents ${shown}`,
        hint: `compare it with “ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub” on its console, then: kcore roster trust ${name}`,
        ...(trusted.ignored.length > 0 && { detail: trusted.ignored.join("\n") }),
      });
    case "changed":
      return hostFailure({
        code: "HOST_KEY_CHANGED",
        message: `the host key of ${where} has CHANGED: an attacker may be listening in, or it was reinstalled`,
        hint: `if it was reinstalled, and the new key is what its console shows: kcore roster trust --replace ${name}`,
        detail: [
          `it presents  ${shown}`,
          ...trusted.keys.map((key) => `expected     ${key.fingerprint} (${key.type}), by ${trusted.source}`),
        ].join("\n"),
      });
    case "revoked":
      return hostFailure({
        code: "HOST_KEY_REVOKED",
        message: `the host key of ${where} was revoked: ${shown} is marked @revoked in ${trusted.source}`,
        hint: "the host needs a new key; do not use this one",
      });
  }
}

/** Signature algorithms that kcore accepts for each type of host key; never SHA-1 (RFC 8332). */
const algorithmsOfType: ReadonlyMap<string, readonly string[]> = new Map([
  ["ssh-ed25519", ["ssh-ed25519"]],
  ["ecdsa-sha2-nistp256", ["ecdsa-sha2-nistp256"]],
  ["ecdsa-sha2-nistp384", ["ecdsa-sha2-nistp384"]],
  ["ecdsa-sha2-nistp521", ["ecdsa-sha2-nistp521"]],
  ["ssh-rsa", ["rsa-sha2-512", "rsa-sha2-256"]],
]);

/**
 * The algorithms to offer: those of the trusted keys first, since the server then presents a trusted key, and the
 * others after them. So a reinstalled host shows its new key, and the message can name both.
 */
export function hostKeyAlgorithms(trusted: readonly HostKey[]): string[] {
  const known = trusted.flatMap(({ type }) => algorithmsOfType.get(type) ?? []);
  return [...new Set([...known, ...[...algorithmsOfType.values()].flat()])];
}
