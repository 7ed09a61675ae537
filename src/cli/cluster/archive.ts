import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { fingerprintOf } from "#engine/encrypted-values/header.ts";
import { identityFile, isLocked, readIdentities } from "#engine/encrypted-values/identities.ts";
import { KcoreError, usageError } from "#errors/problem.ts";
import { parseBackup, type ContextBackup } from "#pki/context-backup.ts";
import { runTask, type RunTasks } from "#base/tasks.ts";
import { askSecret } from "../terminal/ask-operator.ts";
import { withCaPassphrase } from "./ca-passphrase.ts";

/** The encryption of one archive; `decrypt` reads the archive back. */
export interface ArchiveCipher {
  readonly encrypt: (text: string) => Promise<string | Uint8Array>;
  /** Undefined if the bytes were changed. */
  readonly decrypt: (bytes: Buffer) => Promise<string | undefined>;
}

export async function passphraseCipher(passphrase: string): Promise<ArchiveCipher> {
  const { lock, unlock } = await import("#engine/encrypted-values/age.ts");
  return { encrypt: (text) => lock(text, passphrase), decrypt: (bytes) => unlock(bytes, passphrase) };
}

/** Encrypts to age recipients. @throws KcoreError USAGE for a text that is no recipient */
export async function recipientsCipher(recipients: readonly string[]): Promise<ArchiveCipher> {
  const { generate, isRecipient, open, recipientOf, seal } = await import("#engine/encrypted-values/age.ts");
  const wrong = recipients.find((one) => !isRecipient(one));
  if (wrong !== undefined)
    throw usageError(`“${wrong}” is no age recipient`, "age1…, as kcore secrets keygen or age-keygen prints it");
  // The identity that reads the archive back lives in this process alone. It must not be weaker than the recipients.
  const own = await generate({ postQuantum: recipients.every((one) => one.startsWith("age1pq1")) });
  const header = { place: "cluster-backup", fingerprints: recipients.map(fingerprintOf) };
  return {
    encrypt: async (text) => seal(Buffer.from(text), [...recipients, (await recipientOf(own)) ?? ""], header),
    async decrypt(bytes) {
      const opened = await open(bytes, [own]);
      return opened && Buffer.from(opened).toString("utf8");
    },
  };
}

export interface ArchiveKeys {
  readonly passphraseFile?: string;
  /** The file of the age identities. */
  readonly identity?: string;
}

export interface OpenedArchive {
  readonly backup: ContextBackup;
  /** The passphrase that opened the archive. */
  readonly passphrase?: string;
}

/**
 * Opens an archive of this or an earlier version, by the passphrase or by this user's age identities.
 * @throws KcoreError FILE_UNREADABLE, BACKUP_DAMAGED, PKI_PASSPHRASE_WRONG, SECRET_IDENTITY, SECRET_UNREADABLE; as withCaPassphrase does
 */
export async function openArchive(
  file: string,
  { passphraseFile, identity }: ArchiveKeys,
  tasks: RunTasks,
): Promise<OpenedArchive> {
  const bytes = await readFile(file).catch((cause: Error) => {
    throw new KcoreError({ code: "FILE_UNREADABLE", message: `${file} cannot be read: ${cause.message}` }, { cause });
  });
  if (!isLocked(bytes)) return { backup: parseBackup("", file) };
  const opening = (decrypt: () => Promise<string>): Promise<string> => runTask(tasks, `opening ${file}`, decrypt);
  if (!isForPassphrase(bytes)) {
    const text = await opening(() => openByIdentities(file, bytes, identity ?? identityFile(process.env, homedir())));
    return { backup: parseBackup(text, file) };
  }
  return withCaPassphrase(passphraseFile, async (passphrase) => {
    const text = await opening(() => openByPassphrase(file, bytes, passphrase));
    return { backup: parseBackup(text, file), passphrase };
  });
}

/** kcore writes archives for a passphrase alone in age's armor; `age -p` writes them without it, too. */
function isForPassphrase(bytes: Buffer): boolean {
  const head = bytes.toString("latin1", 0, 100);
  return head.startsWith("-----BEGIN") || head.includes("\n-> scrypt ");
}

async function openByPassphrase(file: string, bytes: Buffer, passphrase: string): Promise<string> {
  const { unlock } = await import("#engine/encrypted-values/age.ts");
  const opened = await unlock(bytes, passphrase);
  if (opened !== undefined) return opened;
  throw new KcoreError({
    code: "PKI_PASSPHRASE_WRONG",
    message: `the passphrase does not open ${file}`,
    hint: "the passphrase is that of the CA's keys when the backup was made; if it is right, the file was changed",
  });
}

async function openByIdentities(file: string, bytes: Buffer, identities: string): Promise<string> {
  const { open } = await import("#engine/encrypted-values/age.ts");
  const opened = await open(bytes, await readIdentities(identities, askSecret));
  if (opened) return Buffer.from(opened).toString("utf8");
  throw new KcoreError({
    code: "SECRET_UNREADABLE",
    message: `the identities in ${identities} do not open ${file}, or the file was changed`,
    hint: "--identity FILE names the identity of a recipient of the archive",
  });
}
