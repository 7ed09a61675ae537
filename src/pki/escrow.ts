import { constants, generateKeyPair, privateDecrypt, type KeyObject } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { z } from "zod";
import { KcoreError } from "#errors/problem.ts";
import { openAuthority } from "./cluster.ts";
import { decryptKey, encryptKey } from "./encrypted-key.ts";
import { ensurePrivateFolder, replaceFile, readText } from "./private-files.ts";

/** One LUKS container's recovery key, sealed for the cluster's escrow key (ADR 0007). */
const Sealed = z.strictObject({
  uuid: z.uuid(),
  /** Serials of the disks that carry the container, as the node tells them. */
  disks: z.array(z.string().max(128)).max(64),
  /** Lower-case hex: RSAES-OAEP with SHA-256 of the recovery key's letters. */
  sealed: z.string().regex(/^[0-9a-f]{512,2048}$/),
  /** When it came here, milliseconds since 1970. */
  at: z.int(),
});
export type Sealed = z.output<typeof Sealed>;

const Escrow = z.strictObject({ node: z.string(), id: z.string(), keys: z.array(Sealed) });
/** What lies here of one node; of a container with several keys the last one counts. */
export type Escrow = z.output<typeof Escrow>;

/** So many keys are kept of a node, the newest: a node that tells of ever new ones fills no disk. */
const mostKeys = 1000;
const keyFile = "escrow.key";
const publicFile = "escrow.pub";

/** Where the looks at recovery keys are recorded. */
export function escrowTrail(folder: string): string {
  return join(folder, "escrow", "audit");
}

/** The public escrow key of a context, in PEM; undefined when there is none yet. @throws what the file system says */
export async function readEscrowKey(folder: string): Promise<string | undefined> {
  const key = await readFile(join(folder, publicFile), "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  return key;
}

/**
 * Makes a context's escrow key, RSA with 3072 bits; the private half is encrypted as the CA's keys are, with the same passphrase.
 * Returns the public half in PEM. @throws KcoreError PKI_PASSPHRASE_WRONG
 */
export async function makeEscrowKey(folder: string, passphrase: string): Promise<string> {
  await openAuthority(folder, passphrase); // one passphrase for all keys of a context
  const { privateKey, publicKey } = await promisify(generateKeyPair)("rsa", { modulusLength: 3072 });
  const pem = publicKey.export({ type: "spki", format: "pem" }) as string;
  // The public half is what others see: it comes last.
  await replaceFile(join(folder, keyFile), encryptKey(privateKey, passphrase));
  await replaceFile(join(folder, publicFile), pem, { mode: 0o644 });
  return pem;
}

/** @throws KcoreError PKI_PASSPHRASE_WRONG, FILE_UNREADABLE */
export async function openEscrowKey(folder: string, passphrase: string): Promise<KeyObject> {
  const file = join(folder, keyFile);
  return decryptKey(await readText(file), passphrase, file);
}

/** The recovery key itself. @throws KcoreError RECOVERY_KEY_UNREADABLE for one that was sealed for another key, or changed */
export function unseal({ uuid, sealed }: Pick<Sealed, "uuid" | "sealed">, key: KeyObject): string {
  try {
    const padding = { padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: "sha256" };
    return privateDecrypt({ key, ...padding }, Buffer.from(sealed, "hex")).toString("utf8");
  } catch {
    // No cause: OpenSSL says as little as it can, on purpose.
    throw new KcoreError({
      code: "RECOVERY_KEY_UNREADABLE",
      message: `the sealed recovery key of the container ${uuid} does not open`,
      hint: "it was sealed for another escrow key; the container's own header has it, too (token 31): deploy_node brings it here",
    });
  }
}

/**
 * Reads what `luks.escrowed` told: words `UUID:HEX:SERIAL,SERIAL`.
 * @throws KcoreError RECOVERY_KEY_UNREADABLE
 */
export function parseSealed(text: string, at: number): readonly Sealed[] {
  return text
    .split(" ")
    .filter((word) => word !== "")
    .map((word) => {
      const [, uuid, sealed, serials = ""] = /^([^:]*):([^:]*):(.*)$/.exec(word) ?? [];
      const parsed = Sealed.safeParse({
        uuid,
        sealed,
        disks: serials.split(",").filter((serial) => serial !== ""),
        at,
      });
      if (parsed.success) return parsed.data;
      throw new KcoreError({
        code: "RECOVERY_KEY_UNREADABLE",
        message: "the node told a sealed recovery key that is none",
      });
    });
}

/** Keeps what is new of a node's sealed keys, besides those that came before. Returns how many were new. */
export async function keepSealed(
  folder: string,
  { node, id }: Pick<Escrow, "node" | "id">,
  keys: readonly Sealed[],
): Promise<number> {
  const known = (await readEscrows(folder)).find((escrow) => escrow.id === id)?.keys ?? [];
  const fresh = keys.filter(({ sealed }) => !known.some((key) => key.sealed === sealed));
  if (fresh.length === 0) return 0;
  await ensurePrivateFolder(join(folder, "escrow"));
  const escrow: Escrow = { node, id, keys: [...known, ...fresh].slice(-mostKeys) };
  await replaceFile(join(folder, "escrow", `${id}.json`), `${JSON.stringify(escrow, undefined, 2)}\n`);
  return fresh.length;
}

/** All that lies here, by node. @throws KcoreError RECOVERY_KEY_UNREADABLE for a file that is damaged */
export async function readEscrows(folder: string): Promise<readonly Escrow[]> {
  const names = await readdir(join(folder, "escrow")).catch((error: NodeJS.ErrnoException): string[] => {
    if (error.code === "ENOENT") return [];
    throw error;
  });
  const escrows = names.filter((name) => name.endsWith(".json"));
  return Promise.all(escrows.map((name) => readEscrow(join(folder, "escrow", name))));
}

async function readEscrow(file: string): Promise<Escrow> {
  const text = await readText(file);
  try {
    return Escrow.parse(JSON.parse(text));
  } catch (error) {
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
