import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { fingerprintOf } from "#engine/encrypted-values/header.ts";
import { identityFile, isLocked, readIdentities } from "#engine/encrypted-values/identities.ts";
import { KcoreError, usageError } from "#errors/problem.ts";
import { parseBackup, type ContextBackup } from "#pki/context-backup.ts";
import { runTask, type RunTasks } from "#base/tasks.ts";
import { askSecret } from "../terminal/ask-operator.ts";
import { withCaPassphrase } from "./ca-passphrase.ts";

/** The encryption of one archive; `decrypt` reads the archive back, undefined if the bytes were changed. */
export interface ArchiveCipher {
  readonly encrypt: (text: string) => Promise<string | Uint8Array>;
  readonly decrypt: (bytes: Buffer) => Promise<string | undefined>;
}

export async function passphraseCipher(passphrase: string): Promise<ArchiveCipher> {
  const { lock, unlock } = await import("#engine/encrypted-values/age.ts");
  return { encrypt: (text) => lock(text, passphrase), decrypt: (bytes) => unlock(bytes, passphrase) };
}

/** Encrypts to age recipients. @throws KcoreError USAGE for a text that is no recipient */
export async function recipientsCipher(recipients: readonly string[]): Promise<ArchiveCipher> {
  const { generate, isRecipient, recipientOf, seal } = await import("#engine/encrypted-values/age.ts");
  const wrong = recipients.find((one) => !isRecipient(one));
  if (wrong !== undefined)
    throw usageError(`“${wrong}” is no age recipient`, "age1…, as kcore secrets keygen or age-keygen prints it");
  // The identity that reads the archive back lives in this process alone. It must not be weaker than the recipients.
  const own = await generate({ postQuantum: recipients.every((one) => one.startsWith("age1pq1")) });
  const header = { place: "cluster-backup", fingerprints: recipients.map(fingerprintOf) };
  const all = [...recipients, (await recipientOf(own)) ?? ""];
  return { encrypt: (text) => seal(Buffer.from(text), all, header), decrypt: (bytes) => openBy([own], bytes) };
}

async function openBy(identities: readonly string[], bytes: Buffer): Promise<string | undefined> {
  const { open } = await import("#engine/encrypted-values/age.ts");
  const opened = await open(bytes, identities);
  return opened && Buffer.from(opened).toString("utf8");
}

export interface ArchiveKeys {
  readonly passphraseFile?: string;
  /** The file of the age identities. */
  readonly identity?: string;
}

/**
 * Opens an archive of this or an earlier version, by the passphrase or by this user's age identities.
 * @throws KcoreError FILE_UNREADABLE, BACKUP_DAMAGED, PKI_PASSPHRASE_WRONG, SECRET_IDENTITY, SECRET_UNREADABLE; as withCaPassphrase does
 */
export async function openArchive(
  file: string,
  { passphraseFile, identity = identityFile(process.env, homedir()) }: ArchiveKeys,
  tasks: RunTasks,
): Promise<{ readonly backup: ContextBackup; readonly passphrase?: string }> {
  const bytes = await readFile(file).catch((cause: Error) => {
    throw new KcoreError({ code: "FILE_UNREADABLE", message: `${file} cannot be read: ${cause.message}` }, { cause });
  });
  if (!isLocked(bytes)) return { backup: parseBackup("", file) };
  const opening = async (open: Promise<string | undefined>, problem: KcoreError): Promise<ContextBackup> => {
    const text = await runTask(tasks, `opening ${file}`, () => open);
    if (text === undefined) throw problem;
    return parseBackup(text, file);
  };
  const { isForPassphrase } = await import("#engine/encrypted-values/age.ts");
  if (!isForPassphrase(bytes)) {
    const message = `the identities in ${identity} do not open ${file}, or the file was changed`;
    const hint = "--identity FILE names the identity of a recipient of the archive";
    const identities = await readIdentities(identity, askSecret);
    const problem = new KcoreError({ code: "SECRET_UNREADABLE", message, hint });
    return { backup: await opening(openBy(identities, bytes), problem) };
  }
  const message = `the passphrase does not open ${file}`;
  const hint = "the passphrase is that of the CA's keys when the backup was made; if it is right, the file was changed";
  const problem = new KcoreError({ code: "PKI_PASSPHRASE_WRONG", message, hint });
  return withCaPassphrase(passphraseFile, async (passphrase) => {
    const { decrypt } = await passphraseCipher(passphrase);
    return { backup: await opening(decrypt(bytes), problem), passphrase };
  });
}
