import { createCipheriv, createPrivateKey, randomBytes, scryptSync, type KeyObject } from "node:crypto";
import { KcoreError } from "#errors/problem.ts";
import { encodeDer, integer, objectId, octetString, sequence, toPem } from "./der.ts";

/** Cost of guessing a passphrase, see scrypt (RFC 7914). */
export interface ScryptCost {
  readonly N: number;
  readonly r: number;
  readonly p: number;
}

/** OWASP's setting for 16 MiB; with a larger N OpenSSL's own limit of 32 MiB would refuse to open the file (ADR 0111). */
const usualCost: ScryptCost = { N: 16_384, r: 8, p: 5 };
const shortestPassphrase = 8;
const oids = { pbes2: "1.2.840.113549.1.5.13", scrypt: "1.3.6.1.4.1.11591.4.11", aes256Cbc: "2.16.840.1.101.3.4.1.42" };

/** @throws KcoreError PKI_PASSPHRASE_WEAK for a passphrase under 8 characters. */
export function checkPassphrase(passphrase: string): void {
  if (passphrase.length >= shortestPassphrase) return;
  throw new KcoreError({
    code: "PKI_PASSPHRASE_WEAK",
    message: `the passphrase for the cluster's CA keys has fewer than ${shortestPassphrase} characters`,
    hint: "whoever holds the CA keys and guesses it owns every node: several random words are good",
  });
}

/**
 * A private key as PKCS#8 `ENCRYPTED PRIVATE KEY`: PBES2 with scrypt and AES-256-CBC (RFC 8018, RFC 7914), which
 * `openssl pkey -in FILE` opens too. node:crypto's own export would use PBKDF2 with only 2048 rounds.
 */
export function encryptKey(key: KeyObject, passphrase: string, { N, r, p }: ScryptCost = usualCost): string {
  checkPassphrase(passphrase);
  const salt = randomBytes(16);
  const iv = randomBytes(16);
  const secret = scryptSync(passphrase, salt, 32, { N, r, p });
  const cipher = createCipheriv("aes-256-cbc", secret, iv);
  const sealed = Buffer.concat([cipher.update(key.export({ type: "pkcs8", format: "der" })), cipher.final()]);
  const derivation = sequence([
    objectId(oids.scrypt),
    sequence([octetString(salt), integer(N), integer(r), integer(p)]),
  ]);
  const encryption = sequence([objectId(oids.aes256Cbc), octetString(iv)]);
  const info = sequence([sequence([objectId(oids.pbes2), sequence([derivation, encryption])]), octetString(sealed)]);
  return toPem("ENCRYPTED PRIVATE KEY", encodeDer(info));
}

/** Opens a key that {@link encryptKey} closed. @throws KcoreError PKI_PASSPHRASE_WRONG, PKI_KEY_UNREADABLE */
export function decryptKey(pem: string, passphrase: string, where: string): KeyObject {
  if (!pem.includes("-----BEGIN ENCRYPTED PRIVATE KEY-----")) {
    throw new KcoreError({
      code: "PKI_KEY_UNREADABLE",
      message: `${where} holds no encrypted private key`,
      hint: "restore it from a backup; kcore never keeps a CA key in the clear",
    });
  }
  try {
    return createPrivateKey({ key: pem, passphrase });
  } catch {
    // No cause: OpenSSL cannot tell a wrong passphrase from a damaged file, and its text helps nobody.
    throw new KcoreError({
      code: "PKI_PASSPHRASE_WRONG",
      message: `the passphrase does not open ${where}`,
      hint: "it is the one given to “kcore create cluster”; --passphrase-file FILE or KCORE_CA_PASSPHRASE pass it without a prompt",
    });
  }
}
