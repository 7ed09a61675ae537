import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createPrivateKey,
  randomBytes,
  scryptSync,
  timingSafeEqual,
  type KeyObject,
} from "node:crypto";
import { KcoreError } from "#errors/problem.ts";
import { encodeDer, integer, objectId, octetString, parseDer, sequence, toPem, type Asn1 } from "./der.ts";

/** The parameters of scrypt (RFC 7914), which decide the cost of guessing a passphrase. */
export interface ScryptCost {
  readonly N: number;
  readonly r: number;
  readonly p: number;
}

/** OWASP's setting for 16 MiB of memory. With a larger N, OpenSSL would reach its own limit of 32 MiB and not open the file (ADR 0111). */
const usualCost: ScryptCost = { N: 16_384, r: 8, p: 5 };
const shortestPassphrase = 8;
const keyLabel = "ENCRYPTED PRIVATE KEY";
const sealLabel = "KCORE KEY SEAL";
const oids = { pbes2: "1.2.840.113549.1.5.13", scrypt: "1.3.6.1.4.1.11591.4.11", aes256Cbc: "2.16.840.1.101.3.4.1.42" };

/** Refuses a passphrase of fewer than 8 characters. @throws KcoreError PKI_PASSPHRASE_WEAK */
export function checkPassphrase(passphrase: string): void {
  if (passphrase.length >= shortestPassphrase) return;
  throw new KcoreError({
    code: "PKI_PASSPHRASE_WEAK",
    message: `the passphrase for the cluster's CA keys has fewer than ${shortestPassphrase} characters`,
    hint: "an attacker who holds the CA keys and guesses it owns every node: several random words are good",
  });
}

/**
 * A private key as PKCS#8 `ENCRYPTED PRIVATE KEY`: PBES2 with scrypt and AES-256-CBC (RFC 8018, RFC 7914), which
 * `openssl pkey -in FILE` opens too. An HMAC-SHA256 over all of that follows, so that no bit can be changed without the
 * passphrase (S-15). node:crypto's own export would use PBKDF2 with only 2048 rounds, and authenticate nothing.
 * @throws KcoreError PKI_PASSPHRASE_WEAK
 */
export function encryptKey(key: KeyObject, passphrase: string, cost: ScryptCost = usualCost): string {
  checkPassphrase(passphrase);
  const salt = randomBytes(16);
  const iv = randomBytes(16);
  const secrets = derive(passphrase, salt, cost);
  const cipher = createCipheriv("aes-256-cbc", secrets.cipher, iv);
  const bits = Buffer.concat([cipher.update(key.export({ type: "pkcs8", format: "der" })), cipher.final()]);
  const { N, r, p } = cost;
  const derivation = sequence([
    objectId(oids.scrypt),
    sequence([octetString(salt), integer(N), integer(r), integer(p)]),
  ]);
  const encryption = sequence([objectId(oids.aes256Cbc), octetString(iv)]);
  const info = sequence([sequence([objectId(oids.pbes2), sequence([derivation, encryption])]), octetString(bits)]);
  const der = encodeDer(info);
  return toPem(keyLabel, der) + toPem(sealLabel, sealOf(der, secrets.seal));
}

/** Decrypts a key of {@link encryptKey}; a key without its seal counts as changed. `where` names the file in errors. @throws KcoreError PKI_PASSPHRASE_WRONG, PKI_KEY_UNREADABLE */
export function decryptKey(pem: string, passphrase: string, where: string): KeyObject {
  const der = fromPem(keyLabel, pem);
  if (!der) {
    throw new KcoreError({
      code: "PKI_KEY_UNREADABLE",
      message: `${where} holds no encrypted private key`,
      hint: "restore it from a backup; kcore never keeps a CA key in the clear",
    });
  }
  try {
    return openSealed(der, fromPem(sealLabel, pem) ?? Buffer.alloc(0), passphrase);
  } catch {
    // No cause: a wrong passphrase looks like a changed file, and OpenSSL's text does not help.
    throw new KcoreError({
      code: "PKI_PASSPHRASE_WRONG",
      message: `the passphrase does not open ${where}`,
      hint: "the passphrase is the one given to “kcore create cluster”; --passphrase-file FILE or KCORE_CA_PASSPHRASE pass it without a prompt; if the passphrase is right, the file was changed: restore it from a backup",
    });
  }
}

/** Derives both secrets at once: a second derivation would double the operator's wait, but not the cost of guessing. */
function derive(
  passphrase: string,
  salt: Uint8Array,
  cost: ScryptCost,
): { readonly cipher: Buffer; readonly seal: Buffer } {
  // The first 32 bytes are those that OpenSSL derives when it asks for 32 (RFC 7914, section 6: blocks of PBKDF2-HMAC-SHA256).
  const bytes = scryptSync(passphrase, salt, 64, cost);
  return { cipher: bytes.subarray(0, 32), seal: bytes.subarray(32) };
}

function sealOf(der: Uint8Array, secret: Uint8Array): Buffer {
  return createHmac("sha256", secret).update(der).digest();
}

/** Verifies the seal, then decrypts the key. Throws if anything was changed. */
function openSealed(der: Buffer, seal: Buffer, passphrase: string): KeyObject {
  const [algorithm, bits] = childrenOf(parseDer(der));
  const [, parameters] = childrenOf(algorithm);
  const [derivation, encryption] = childrenOf(parameters);
  const [, scrypt] = childrenOf(derivation);
  const [salt, ...numbers] = childrenOf(scrypt);
  const [N = 0, r = 0, p = 0] = numbers.map((number) =>
    Buffer.from(number.value as string, "binary").readUIntBE(0, (number.value as string).length),
  );
  const secrets = derive(passphrase, contentOf(salt), { N, r, p });
  if (seal.length !== 32 || !timingSafeEqual(sealOf(der, secrets.seal), seal)) throw new Error("another seal");
  const decipher = createDecipheriv("aes-256-cbc", secrets.cipher, contentOf(childrenOf(encryption)[1]));
  const plain = Buffer.concat([decipher.update(contentOf(bits)), decipher.final()]);
  return createPrivateKey({ key: plain, format: "der", type: "pkcs8" });
}

function childrenOf(tree: Asn1 | undefined): readonly Asn1[] {
  return Array.isArray(tree?.value) ? tree.value : [];
}

function contentOf(tree: Asn1 | undefined): Buffer {
  return Buffer.from(typeof tree?.value === "string" ? tree.value : "", "binary");
}

function fromPem(label: string, pem: string): Buffer | undefined {
  const [, text] = new RegExp(`-----BEGIN ${label}-----([^-]+)-----END ${label}-----`).exec(pem) ?? [];
  return text === undefined ? undefined : Buffer.from(text, "base64");
}
