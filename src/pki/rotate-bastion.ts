import { createPublicKey } from "node:crypto";
import { rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { encryptKey, type ScryptCost } from "./encrypted-key.ts";
import { createFile, syncFolder } from "./private-files.ts";
import { generateKey } from "./keys.ts";
import { signSubCa, type Root } from "./sub-ca.ts";

/**
 * Gives the bastion a new sub-CA, key and certificate, and gives its certificate. What the old one signed stays valid
 * until it expires or is revoked. Interrupted between the two files, it is mended by doing it again: the root is all
 * that it needs.
 */
export async function rotateBastionSubCa(
  folder: string,
  {
    root,
    passphrase,
    now,
    cost,
  }: { readonly root: Root; readonly passphrase: string; readonly now: number; readonly cost?: ScryptCost },
): Promise<string> {
  const key = generateKey();
  const certificate = signSubCa({ root, publicKey: createPublicKey(key), now });
  const files = [
    { name: "sub-ca.key", text: encryptKey(key, passphrase, cost), mode: 0o600 },
    { name: "sub-ca.crt", text: certificate, mode: 0o644 },
  ];
  for (const { name, text, mode } of files) {
    await rm(join(folder, `${name}.new`), { force: true });
    await createFile(join(folder, `${name}.new`), text, { mode });
  }
  for (const { name } of files) await rename(join(folder, `${name}.new`), join(folder, name));
  await syncFolder(folder);
  return certificate;
}
