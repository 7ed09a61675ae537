import { createPublicKey, type KeyObject, type X509Certificate } from "node:crypto";
import { join } from "node:path";
import { KcoreError } from "#errors/problem.ts";
import { issueCertificate } from "./certificate.ts";
import { firstCertificate, isForHost, isIssuedBy, isPairOf, readableCertificates } from "./chain.ts";
import { checkPassphrase, decryptKey, encryptKey, type ScryptCost } from "./encrypted-key.ts";
import { backdateMs, certificateNames, provenKey, type KeyProof } from "./issue.ts";
import { generateKey, publicDer, readPublicKey } from "./keys.ts";
import { createFile, readText } from "#base/file.ts";
import { createFolder, ensurePrivateFolder } from "#base/folder.ts";

const dayMs = 86_400_000;
const usageOids = { server: "1.3.6.1.5.5.7.3.1", client: "1.3.6.1.5.5.7.3.2" } as const;

/** The purpose of a certificate of a foreign CA. */
export type CertificateUsage = keyof typeof usageOids;

/** The CA of another program, such as Kubernetes or etcd, kept on this machine; kcore's own clusters do not trust it. */
export interface ForeignCa {
  readonly certificate: X509Certificate;
  readonly pem: string;
  readonly key: KeyObject;
}

/** The contents of a foreign CA's certificate, all decided by its issuer. */
export interface ForeignLeaf {
  readonly commonName: string;
  readonly organizations: readonly string[];
  /** Host names and addresses. */
  readonly hosts: readonly string[];
  readonly usages: readonly CertificateUsage[];
  readonly days: number;
  /** The public key, made where it will be used: base64 DER. */
  readonly spki: string;
}

export function foreignFolder(home: string): string {
  return join(home, "authorities");
}

function caFiles(folder: string): { readonly certificate: string; readonly key: string } {
  return { certificate: join(folder, "ca.crt"), key: join(folder, "ca.key") };
}

/** The certificate of a foreign CA in PEM. @throws KcoreError PKI_AUTHORITY_UNKNOWN */
export async function readForeignCa(home: string, name: string): Promise<string> {
  const pem = await readForeignCaIfAny(home, name);
  if (pem !== undefined) return pem;
  throw new KcoreError({
    code: "PKI_AUTHORITY_UNKNOWN",
    message: `there is no CA “${name}” in ${foreignFolder(home)}`,
    hint: `a stage before makes it: { id: ca, run: pki.createAuthority, name: ${name}, once: true }`,
  });
}

/** The certificate of a foreign CA in PEM; undefined if there is none. */
export async function readForeignCaIfAny(home: string, name: string): Promise<string | undefined> {
  try {
    return await readText(caFiles(join(foreignFolder(home), name)).certificate);
  } catch (error) {
    if (error instanceof KcoreError && (error.cause as NodeJS.ErrnoException | undefined)?.code === "ENOENT")
      return undefined;
    throw error;
  }
}

/**
 * Makes a CA, as a whole or not at all, and returns its certificate in PEM. Undefined: a CA of that name exists, which is never replaced.
 * @throws KcoreError PKI_PASSPHRASE_WEAK, FILE_UNTRUSTED
 */
export async function createForeignCa(
  home: string,
  name: string,
  plan: {
    readonly commonName: string;
    readonly days: number;
    readonly passphrase: string;
    readonly now: number;
    readonly cost?: ScryptCost;
  },
): Promise<string | undefined> {
  checkPassphrase(plan.passphrase);
  const key = generateKey();
  const pem = issueCertificate({
    commonName: plan.commonName,
    publicKey: createPublicKey(key),
    signer: key,
    notBefore: new Date(plan.now - backdateMs),
    notAfter: new Date(plan.now + plan.days * dayMs),
    pathLength: 0,
  });
  const folder = foreignFolder(home);
  await ensurePrivateFolder(home);
  await ensurePrivateFolder(folder);
  const fill = async (fresh: string): Promise<void> => {
    const files = caFiles(fresh);
    await createFile(files.key, encryptKey(key, plan.passphrase, plan.cost));
    await createFile(files.certificate, pem, { mode: 0o644 });
  };
  try {
    await createFolder(join(folder, name), fill);
  } catch (error) {
    if (["ENOTEMPTY", "EEXIST"].includes((error as NodeJS.ErrnoException).code ?? "")) return undefined;
    throw error;
  }
  return pem;
}

/** A foreign CA with its key. @throws KcoreError PKI_AUTHORITY_UNKNOWN, PKI_PASSPHRASE_WRONG, PKI_KEY_UNREADABLE, PKI_CERT_INVALID */
export async function openForeignCa(home: string, name: string, passphrase: string): Promise<ForeignCa> {
  const files = caFiles(join(foreignFolder(home), name));
  const pem = await readForeignCa(home, name);
  const key = decryptKey(await readText(files.key), passphrase, files.key);
  const certificate = firstCertificate(pem);
  if (isPairOf(certificate, key)) return { certificate, pem, key };
  throw new KcoreError({
    code: "PKI_CERT_INVALID",
    message: `${files.certificate} and ${files.key} do not belong together`,
    hint: "restore both from one backup",
  });
}

/**
 * Issues a certificate (PEM) for a key whose holder proved the private half. The certificate ends with its CA at the latest.
 * @throws KcoreError PKI_PROOF_INVALID, PKI_KEY_KIND, PKI_NAME_INVALID; PKI_CERT_INVALID if the CA has ended
 */
export function issueForeign(
  leaf: ForeignLeaf,
  { ca, proof, now }: { readonly ca: ForeignCa; readonly proof: KeyProof; readonly now: number },
): string {
  const { subject, validTo, validToDate } = ca.certificate;
  const end = Math.min(now + leaf.days * dayMs, validToDate.getTime());
  if (end <= now)
    throw new KcoreError({
      code: "PKI_CERT_INVALID",
      message: `the CA ${subject} has ended: ${validTo}`,
      hint: "put the CA's folder aside, and pki.createAuthority makes a new CA; every program that trusts the former one needs the new one",
    });
  return issueCertificate({
    commonName: leaf.commonName,
    organizations: leaf.organizations,
    publicKey: provenKey(leaf.spki, proof, leaf.commonName),
    issuer: ca.certificate,
    signer: ca.key,
    notBefore: new Date(now - backdateMs),
    notAfter: new Date(end),
    usages: leaf.usages,
    hosts: namesForLeaf(leaf),
  });
}

/** The reason to issue a certificate anew, in words; undefined: it fits, and more than a third of its life is left. */
export function foreignRenewalReason(pem: string, leaf: ForeignLeaf, caPem: string, now: number): string | undefined {
  const [certificate] = readableCertificates(pem);
  if (!certificate) return "it cannot be read";
  if (!isIssuedBy(certificate, firstCertificate(caPem))) return "another CA issued it";
  if (!publicDer(certificate.publicKey).equals(publicDer(readPublicKey(leaf.spki)))) return "the key changed";
  const { CN: names = [], O: organizations = [] } = certificate.toLegacyObject().subject as Partial<
    Record<"CN" | "O", string | string[]>
  >;
  if (!isSame([names].flat(), [leaf.commonName]) || !isSame([organizations].flat(), leaf.organizations))
    return "its subject changed";
  const hosts = (certificate.subjectAltName ?? "").split(", ").filter((name) => name !== "");
  if (hosts.length !== namesForLeaf(leaf).length || !namesForLeaf(leaf).every((host) => isForHost(certificate, host)))
    return "its names changed";
  const usages = leaf.usages.map((usage) => usageOids[usage]);
  if (!isSame([...certificate.keyUsage].toSorted(), usages.toSorted())) return "its usages changed";
  const from = certificate.validFromDate.getTime();
  const leftMs = certificate.validToDate.getTime() - now;
  if (leftMs <= 0) return "it expired";
  if (leftMs * 3 <= certificate.validToDate.getTime() - from) return `it expires in ${Math.floor(leftMs / dayMs)} days`;
  return from > now ? "it is not valid yet" : undefined;
}

function namesForLeaf({ hosts: [host, ...addresses] }: ForeignLeaf): readonly string[] {
  return host === undefined ? [] : certificateNames({ host, addresses });
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((text, index) => text === b[index]);
}
