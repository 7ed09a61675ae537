import {
  armor,
  Decrypter,
  Encrypter,
  generateHybridIdentity,
  generateX25519Identity,
  identityToRecipient,
  Stanza,
} from "age-encryption";
import { STANZA } from "./header.ts";

// The one home of age-encryption (ADR 0002). Importers load it late (`await import`), so other commands start without it.

/** Encrypts for recipients (`age1…`, `age1pq1…`). The header, authenticated by its MAC, has the place and the recipients' fingerprints. */
export function seal(
  value: Uint8Array,
  recipients: readonly string[],
  { place, fingerprints }: { readonly place: string; readonly fingerprints: readonly string[] },
): Promise<Uint8Array> {
  const encrypter = new Encrypter();
  for (const recipient of recipients) encrypter.addRecipient(recipient);
  encrypter.addRecipient({
    wrapFileKey: () => [new Stanza([STANZA, place, ...fingerprints], new Uint8Array())],
  });
  return encrypter.encrypt(value);
}

/** Decrypts with any of the identities, armored or not; undefined if none fits or if the text was changed, which are not distinguished. */
export async function open(sealed: Uint8Array, identities: readonly string[]): Promise<Uint8Array | undefined> {
  const decrypter = new Decrypter();
  for (const identity of identities) decrypter.addIdentity(identity);
  try {
    return await decrypter.decrypt(withoutArmor(sealed));
  } catch {
    return undefined;
  }
}

/** Encrypts a file of identities by a passphrase (scrypt with 2^`work`, as `age -p`), in age's armor. */
export async function lock(content: string, passphrase: string, work = 18): Promise<string> {
  const encrypter = new Encrypter();
  encrypter.setScryptWorkFactor(work);
  encrypter.setPassphrase(passphrase);
  return armor.encode(await encrypter.encrypt(content));
}

/** Opens a file of {@link lock} or `age -p`, armored or not; undefined when the passphrase is wrong or the file was changed. */
export async function unlock(file: Uint8Array, passphrase: string): Promise<string | undefined> {
  const decrypter = new Decrypter();
  decrypter.addPassphrase(passphrase);
  try {
    return await decrypter.decrypt(withoutArmor(file), "text");
  } catch {
    return undefined;
  }
}

/** Whether a passphrase opens a file of {@link seal} or {@link lock}, `age` or `age -p`, armored or not. */
export function isForPassphrase(file: Uint8Array): boolean {
  try {
    return Buffer.from(withoutArmor(file)).toString("latin1", 0, 100).includes("\n-> scrypt ");
  } catch {
    return false;
  }
}

function withoutArmor(file: Uint8Array): Uint8Array {
  const start = Buffer.from(file.subarray(0, 10)).toString("latin1");
  return start === "-----BEGIN" ? armor.decode(Buffer.from(file).toString("latin1")) : file;
}

/** A new identity: X25519, or with `postQuantum` ML-KEM-768 with X25519. */
export function generate({ postQuantum }: { readonly postQuantum: boolean }): Promise<string> {
  return postQuantum ? generateHybridIdentity() : generateX25519Identity();
}

/** The recipient of an identity; undefined for any other text. */
export async function recipientOf(identity: string): Promise<string | undefined> {
  try {
    return await identityToRecipient(identity);
  } catch {
    return undefined;
  }
}

/** Whether values can be sealed to this text as a recipient. */
export function isRecipient(text: string): boolean {
  if (!/^age1[02-9ac-hj-np-z]+$/.test(text) || /^age1tag(pq)?1/.test(text)) return false;
  try {
    new Encrypter().addRecipient(text);
    return true;
  } catch {
    return false;
  }
}
