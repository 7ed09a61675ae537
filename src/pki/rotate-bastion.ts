import { createPublicKey } from "node:crypto";
import { join } from "node:path";
import { encryptKey, type ScryptCost } from "./encrypted-key.ts";
import { replaceFile } from "#base/file.ts";
import { generateKey } from "./keys.ts";
import { firstCertificate } from "./chain.ts";
import { daysLeft, openAuthority, openRoot } from "./cluster.ts";
import type { Authority } from "./issue.ts";
import { signSubCa, subCaRenewDays, type Root } from "./sub-ca.ts";

/**
 * Opens the bastion's sub-CA for issuing. If the sub-CA has 180 days or less left and the root lives longer, the root replaces it first.
 * @throws KcoreError as openAuthority and openRoot do
 */
export async function openIssuer(folder: string, passphrase: string, now = Date.now()): Promise<Authority> {
  const present = await openAuthority(folder, passphrase);
  const { validToDate } = present.certificate;
  const canLiveLonger = firstCertificate(present.rootPem).validToDate > validToDate;
  if (daysLeft(present.certificate, now) > subCaRenewDays || !canLiveLonger) return present;
  await rotateBastionSubCa(folder, { root: await openRoot(folder, passphrase), passphrase, now });
  return openAuthority(folder, passphrase);
}

/**
 * Gives the bastion a new sub-CA, key and certificate, and returns its certificate. Certificates of the old one stay valid
 * until they expire or are revoked. A crash between the two files is mended by a second call, which needs the root alone.
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
  await replaceFile(join(folder, "sub-ca.key"), encryptKey(key, passphrase, cost), {
    // The new key is on the disk by then: a full disk changes neither file.
    before: () => replaceFile(join(folder, "sub-ca.crt"), certificate, { mode: 0o644 }),
  });
  return certificate;
}
