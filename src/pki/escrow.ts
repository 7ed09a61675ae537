import { constants, generateKeyPair, privateDecrypt, type KeyObject } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { isDeepStrictEqual, promisify } from "node:util";
import { z } from "zod";
import { KcoreError } from "#errors/problem.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { openAuthority } from "./cluster.ts";
import { decryptKey, encryptKey } from "./encrypted-key.ts";
import { durableJson } from "#base/durable-file.ts";
import { ifThere, readText, replaceFile } from "#base/file.ts";
import { ensurePrivateFolder } from "#base/folder.ts";

/** One LUKS container's recovery key, sealed for the cluster's escrow key (ADR 0007). */
const SealedKey = z.strictObject({
  uuid: z.uuid(),
  /** Serials of the disks that carry the container, as the node reports them. */
  disks: z.array(z.string().max(128)).max(64),
  /** The letters of the recovery key, encrypted by RSAES-OAEP with the hash SHA-256, in lower-case hex. */
  sealed: z.string().regex(/^[0-9a-f]{512,2048}$/),
  /** The time at which this bastion received the key, milliseconds since 1970. */
  at: z.int(),
});
export type SealedKey = z.output<typeof SealedKey>;

/** The SSH endpoint of a machine's initrd while it waits for the key of its root's container. */
const InitrdEndpoint = z.strictObject({
  uuid: z.uuid(),
  port: z.int().min(1).max(65_535),
  /** The initrd's host key, `TYPE BASE64`, read over a verified connection to the machine. */
  hostKey: z.string().regex(/^ssh-ed25519 [A-Za-z0-9+/]{40,200}={0,2}$/),
});
export type InitrdEndpoint = z.output<typeof InitrdEndpoint>;

const Escrow = z.strictObject({
  node: z.string(),
  id: z.string(),
  keys: z.array(SealedKey),
  unlock: InitrdEndpoint.optional(),
});
/** The recovery keys of one node; of several keys for one container the last counts. */
export type Escrow = z.output<typeof Escrow>;

/** The maximum number of keys of a node; older ones are dropped, so that a node that reports ever new keys cannot fill the disk. */
const mostKeys = 1000;
const keyFile = "escrow.key";
const publicFile = "escrow.pub";

/** The folder of the audit trail about the use of recovery keys. */
export function escrowTrail(folder: string): string {
  return join(folder, "escrow", "audit");
}

/** The audit entry about a recovery key that `who` sends to a waiting machine. */
export function recoveryKeySent(who: string, target: string) {
  return { type: "recovery-key.sent", who, target };
}

/** The public escrow key of a context, in PEM; undefined when there is none yet. @throws NodeJS.ErrnoException */
export async function readEscrowKey(folder: string): Promise<string | undefined> {
  return ifThere(readFile(join(folder, publicFile), "utf8"));
}

/**
 * Makes a context's escrow key, RSA with 3072 bits; the private half is encrypted as the CA's keys are, with the same passphrase.
 * Returns the public half in PEM. @throws KcoreError as openAuthority does
 */
export async function makeEscrowKey(folder: string, passphrase: string): Promise<string> {
  // Refuses another passphrase than the one of the context's other keys.
  await openAuthority(folder, passphrase);
  const { privateKey, publicKey } = await promisify(generateKeyPair)("rsa", { modulusLength: 3072 });
  const pem = publicKey.export({ type: "spki", format: "pem" }) as string;
  // The public half is written last, because readEscrowKey takes it for a complete pair.
  await replaceFile(join(folder, keyFile), encryptKey(privateKey, passphrase));
  await replaceFile(join(folder, publicFile), pem, { mode: 0o644 });
  return pem;
}

/** The private half of a context's escrow key. @throws KcoreError PKI_PASSPHRASE_WRONG, PKI_KEY_UNREADABLE, FILE_UNREADABLE */
export async function openEscrowKey(folder: string, passphrase: string): Promise<KeyObject> {
  const file = join(folder, keyFile);
  return decryptKey(await readText(file), passphrase, file);
}

/** Opens a sealed recovery key. @throws KcoreError RECOVERY_KEY_UNREADABLE if it was sealed for another escrow key, or changed */
export function unseal({ uuid, sealed }: Pick<SealedKey, "uuid" | "sealed">, key: KeyObject): string {
  try {
    const padding = { padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: "sha256" };
    return privateDecrypt({ key, ...padding }, Buffer.from(sealed, "hex")).toString("utf8");
  } catch {
    // No cause: OpenSSL hides the reason on purpose.
    throw new KcoreError({
      code: "RECOVERY_KEY_UNREADABLE",
      message: `the sealed recovery key of the container ${uuid} does not open`,
      hint: "the recovery key was sealed for another escrow key; the container's own header has a sealed copy (token 31): deploy_node brings that here",
    });
  }
}

/**
 * Reads the fact `luks.escrowed`: words `UUID:HEX:SERIAL,SERIAL`.
 * @throws KcoreError RECOVERY_KEY_UNREADABLE
 */
export function parseSealedKeys(text: string, at: number): readonly SealedKey[] {
  return text
    .split(" ")
    .filter((word) => word !== "")
    .map((word) => {
      const [, uuid, sealed, serials = ""] = /^([^:]*):([^:]*):(.*)$/.exec(word) ?? [];
      const parsed = SealedKey.safeParse({
        uuid,
        sealed,
        disks: serials.split(",").filter((serial) => serial !== ""),
        at,
      });
      if (parsed.success) return parsed.data;
      throw new KcoreError({
        code: "RECOVERY_KEY_UNREADABLE",
        message: "the node reported a malformed sealed recovery key",
      });
    });
}

/** Reads the fact `luks.root`: `UUID PORT TYPE BASE64`; undefined for an empty fact. @throws KcoreError RECOVERY_KEY_UNREADABLE */
export function parseInitrdEndpoint(text: string): InitrdEndpoint | undefined {
  if (text === "") return undefined;
  const [uuid, port, ...key] = text.split(" ");
  const parsed = InitrdEndpoint.safeParse({ uuid, port: Number(port), hostKey: key.join(" ") });
  if (parsed.success) return parsed.data;
  throw new KcoreError({
    code: "RECOVERY_KEY_UNREADABLE",
    message: "the node reported a malformed endpoint of its initrd",
  });
}

/** The keys that a node reported, and the endpoint of its initrd. */
interface EscrowReport {
  readonly keys: readonly SealedKey[];
  readonly unlock?: InitrdEndpoint | undefined;
}

/** The number of new keys, and whether the initrd's endpoint is new. */
export interface EscrowChange {
  readonly keys: number;
  readonly unlock: boolean;
}

/** Adds a node's new keys to those that this bastion has; `isDry`: only returns the change. */
export async function keepSealedKeys(
  folder: string,
  { node, id }: Pick<Escrow, "node" | "id">,
  { keys, unlock }: EscrowReport,
  { isDry = false }: { readonly isDry?: boolean } = {},
): Promise<EscrowChange> {
  const db = await openEscrow(join(folder, "escrow", `${id}.json`), { node, id, keys: [] });
  const known = db.data;
  const fresh = keys.filter(({ sealed }) => !known.keys.some((key) => key.sealed === sealed));
  const change = { keys: fresh.length, unlock: unlock !== undefined && !isDeepStrictEqual(unlock, known.unlock) };
  if (isDry || (change.keys === 0 && !change.unlock)) return change;
  await ensurePrivateFolder(join(folder, "escrow"));
  const all = [...known.keys, ...fresh].slice(-mostKeys);
  db.data = { node, id, keys: all, ...omitUndefined({ unlock: unlock ?? known.unlock }) };
  await db.write();
  return change;
}

/** The recovery keys of all nodes. @throws KcoreError RECOVERY_KEY_UNREADABLE for a damaged file */
export async function readEscrows(folder: string): Promise<readonly Escrow[]> {
  const names = (await ifThere(readdir(join(folder, "escrow")))) ?? [];
  const escrows = names.filter((name) => name.endsWith(".json"));
  const none = { node: "", id: "", keys: [] };
  return Promise.all(escrows.map(async (name) => (await openEscrow(join(folder, "escrow", name), none)).data));
}

/** Opens one node's file; a missing file has the content `data`. */
async function openEscrow(file: string, data: Escrow) {
  const db = durableJson(file, Escrow, data);
  try {
    await db.read();
    return db;
  } catch (error) {
    if (error instanceof KcoreError) throw error;
    throw new KcoreError(
      {
        code: "RECOVERY_KEY_UNREADABLE",
        message: `${file} is damaged`,
        hint: "restore it from a backup, or move it away and run deploy_node: the nodes have the sealed keys, too",
      },
      { cause: error },
    );
  }
}
