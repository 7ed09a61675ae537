import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { KcoreError } from "#errors/problem.ts";
import { foundedMark, openAuthority, openRoot, placeContext, type PlacedContext } from "./cluster.ts";
import type { Context, ContextHome } from "./contexts.ts";
import { openEscrowKey } from "./escrow.ts";
import { isClusterName } from "./identity.ts";
import { readText, replaceFile } from "#base/file.ts";

/**
 * The files of a context's folder that cannot be made again: keys, certificates, recovery keys and the audit of their use. Issued
 * certificates are left out: a backup's copies may be out of date, and without copies the controllers' records count.
 */
const backedUp = /^(?:[a-z-]+\.(?:crt|key|pub)|escrow\/[A-Za-z0-9-]+\.json|escrow\/audit\/[A-Za-z0-9][A-Za-z0-9._-]*)$/;
/** This file is in a context's folder once a backup of the context was written and verified. */
const backupMark = "backup.json";

const Backup = z.strictObject({
  kind: z.literal("kcore-context"),
  context: z.string().refine(isClusterName),
  controllers: z.array(z.string()),
  files: z.record(z.string().regex(backedUp), z.string()),
  /** The controllers' state, as `kcore controller backup` writes it. */
  state: z.base64().optional(),
});
/** A context with its secrets, as it is encrypted into a backup. */
export type ContextBackup = z.output<typeof Backup>;

/** The contents of a context's backup, without the controllers' state. */
export async function gatherContext({ name, folder, controllers, cert, key }: Context): Promise<ContextBackup> {
  const names = (await readdir(folder, { recursive: true })).filter((file) => backedUp.test(file)).toSorted();
  const files: Record<string, string> = {};
  for (const file of names) files[file] = await readText(join(folder, file));
  // The configuration may name other files for these two, or contain them.
  const operatorFiles = { "kctl.crt": cert, "kctl.key": key };
  return { kind: "kcore-context", context: name, controllers: [...controllers], files: { ...files, ...operatorFiles } };
}

/** Opens each of a context's keys by the passphrase. @throws KcoreError as openAuthority does */
export async function openKeys(folder: string, passphrase: string): Promise<void> {
  await openRoot(folder, passphrase);
  await openAuthority(folder, passphrase);
  if (existsSync(join(folder, "escrow.key"))) await openEscrowKey(folder, passphrase);
}

/** Reads the text of a backup; `file` names it in the error. @throws KcoreError BACKUP_DAMAGED */
export function parseBackup(text: string, file: string): ContextBackup {
  try {
    return Backup.parse(JSON.parse(text));
  } catch (cause) {
    throw new KcoreError(
      { code: "BACKUP_DAMAGED", message: `${file} holds no backup of a context`, hint: "name another file" },
      { cause },
    );
  }
}

/**
 * Puts a context back. The context counts as founded, since the backup does not say whether its cluster was founded later.
 * @throws KcoreError as placeContext does
 */
export function placeBackup(
  contextHome: ContextHome,
  { context, controllers, files }: ContextBackup,
  now: number,
): Promise<PlacedContext> {
  const mode = (name: string): number => (/\.(crt|pub)$/.test(name) ? 0o644 : 0o600);
  const texts = Object.entries({ ...files, [foundedMark]: "{}\n", [backupMark]: "{}\n" });
  const all = new Map(texts.map(([name, text]) => [name, { text, mode: mode(name) }]));
  return placeContext({ ...contextHome, context, controllers, now }, all);
}

/** Notes in a context's folder that a backup was written and verified. */
export function noteBackup(folder: string): Promise<void> {
  return replaceFile(join(folder, backupMark), "{}\n");
}

/** Whether this folder has the CA's keys and no backup of them was ever made. */
export function needsBackup(folder: string): boolean {
  return existsSync(join(folder, "ca.key")) && !existsSync(join(folder, backupMark));
}
