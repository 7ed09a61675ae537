import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  sign,
  verify,
  type KeyObject,
} from "node:crypto";
import { KcoreError } from "#errors/problem.ts";

/** A new EC P-256 private key, the only kind that kcore certifies (ADR 0110). */
export function generateKey(): KeyObject {
  return generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
}

/** The public half as DER SubjectPublicKeyInfo (RFC 5280, section 4.1.2.7). */
export function publicDer(key: KeyObject): Buffer {
  const publicKey = key.type === "private" ? createPublicKey(key) : key;
  return publicKey.export({ type: "spki", format: "der" });
}

/** Lower-case hex SHA-256 of a public key's SPKI: its fingerprint everywhere in kcore. */
export function keyFingerprint(spki: Uint8Array): string {
  return createHash("sha256").update(spki).digest("hex");
}

/**
 * Reads an EC P-256 public key: PEM or base64 DER as a text, DER as bytes.
 * @throws KcoreError PKI_KEY_KIND
 */
export function readPublicKey(text: string | Uint8Array): KeyObject {
  try {
    const der = typeof text === "string" ? Buffer.from(text, "base64") : Buffer.from(text);
    const key =
      typeof text === "string" && text.includes("-----BEGIN")
        ? createPublicKey(text)
        : createPublicKey({ key: der, format: "der", type: "spki" });
    if (key.asymmetricKeyType === "ec" && key.asymmetricKeyDetails?.namedCurve === "prime256v1") return key;
  } catch (error) {
    throw new KcoreError({ code: "PKI_KEY_KIND", message: "the public key cannot be read" }, { cause: error });
  }
  throw new KcoreError({
    code: "PKI_KEY_KIND",
    message: "the public key is not an EC key on the curve P-256",
    hint: "make it with: openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256",
  });
}

/** Reads an unencrypted private key in PEM. @throws KcoreError PKI_KEY_UNREADABLE, without the key in its message */
export function readPrivateKey(pem: string, where: string): KeyObject {
  try {
    return createPrivateKey(pem);
  } catch {
    // No cause: OpenSSL's error may quote the file.
    throw new KcoreError({ code: "PKI_KEY_UNREADABLE", message: `${where} holds no readable private key` });
  }
}

/** A private key's signature over a challenge, to prove the key to an issuer (S-14): ECDSA with SHA-256, DER in base64. */
export function proveKey(key: KeyObject, challenge: string): string {
  return sign("sha256", Buffer.from(challenge, "utf8"), key).toString("base64");
}

/** Whether the holder of the private half of `publicKey` signed this challenge. */
export function isKeyProven(publicKey: KeyObject, challenge: string, proof: string): boolean {
  try {
    return verify("sha256", Buffer.from(challenge, "utf8"), publicKey, Buffer.from(proof, "base64"));
  } catch {
    return false;
  }
}

/** A node signs this text with its new key to get a certificate for it; the nonce is the controller's (S-14). */
export function renewalChallenge(cluster: string, nodeId: string, nonce: string): string {
  return `kcore renewal ${cluster} ${nodeId} ${nonce}`;
}

/** A controller signs this text with the key of its new sub-CA; the nonce is the bastion's. */
export function subCaChallenge(cluster: string, controllerId: string, nonce: string): string {
  return `kcore sub-ca ${cluster} ${controllerId} ${nonce}`;
}

/** A controller signs this text with the key of its own new certificate. The nonce is the bastion's; `renewal` if the controller renews by itself. */
export function controllerChallenge(cluster: string, controllerId: string, nonce: string): string {
  return `kcore controller ${cluster} ${controllerId} ${nonce}`;
}
