import { createPublicKey, type KeyObject, type X509Certificate } from "node:crypto";
import { dirname, join } from "node:path";
import { omitUndefined } from "#base/omit-undefined.ts";
import { KcoreError } from "#errors/problem.ts";
import { createFolder, ensurePrivateFolder, makeFolder } from "#base/folder.ts";
import { issueCertificate } from "./certificate.ts";
import { firstCertificate, isIssuedBy, isPairOf } from "./chain.ts";
import {
  changeConfig,
  configFile,
  contextFolder,
  hasFiles,
  putAside,
  readConfig,
  type ContextHome,
} from "./contexts.ts";
import { checkPassphrase, decryptKey, encryptKey, type ScryptCost } from "./encrypted-key.ts";
import { foreignFolder } from "./foreign-ca.ts";
import { createFile, replaceFile, readText } from "#base/file.ts";
import { commonNameOf, formatIdentity, identityOf } from "./identity.ts";
import { backdateMs, endOfLeaf, type Authority } from "./issue.ts";
import { renewDays } from "./expectation.ts";
import { generateKey, keyFingerprint, publicDer, readPrivateKey } from "./keys.ts";
import { signSubCa, type Root } from "./sub-ca.ts";

const dayMs = 86_400_000;
export const rootCommonName = "kcore-cluster-ca";
const rootDays = 3650;

/** The plan of a new cluster's CA and of the context for it. */
export interface NewCluster extends ContextHome {
  /** The name of the context, and of the cluster in every identity. */
  readonly context: string;
  /** Endpoints of the cluster's controllers, `host:port`; may be empty until the first is deployed. */
  readonly controllers: readonly string[];
  /** The user name in the operator's certificate. */
  readonly operator: string;
  readonly passphrase: string;
  /** Puts an existing context of that name aside (never deletes it). */
  readonly force?: boolean;
  readonly now: number;
  /** For tests: cheaper encryption. */
  readonly cost?: ScryptCost;
}

/** A file in a context's folder while no controller of the cluster was ever seen ready from this machine (ADR 0514). */
export const unfoundedMark = "unfounded.json";
/** The file that replaces `unfoundedMark` once a controller was seen ready. */
export const foundedMark = "founded.json";

export interface PlacedContext {
  readonly folder: string;
  /** The folder to which the former context of that name was moved. */
  readonly aside?: string;
  /** The context that is current afterwards. */
  readonly current?: string;
}

export interface CreatedCluster extends PlacedContext {
  readonly rootPem: string;
}

/** The files of a context's folder, by name. */
export type ContextFiles = ReadonlyMap<string, { readonly text: string; readonly mode: number }>;

/**
 * Makes a cluster's CA on this machine: root, sub-CA and the operator's certificate, and a context for them.
 * @throws KcoreError PKI_PASSPHRASE_WEAK; as placeContext does
 */
export async function createCluster(plan: NewCluster): Promise<CreatedCluster> {
  checkPassphrase(plan.passphrase);
  const files = makeFiles(plan);
  return { ...(await placeContext(plan, files)), rootPem: files.get("ca.crt")?.text ?? "" };
}

/**
 * Makes a context's folder, as a whole or not at all, and then its entry in the configuration. The context becomes current if none is.
 * @throws KcoreError PKI_CONTEXT_EXISTS, PKI_NAME_INVALID; as readConfig does
 */
export async function placeContext(
  plan: ContextHome & Pick<NewCluster, "context" | "controllers" | "force" | "now">,
  files: ContextFiles,
): Promise<PlacedContext> {
  const { home, context } = plan;
  const reserved = [configFile(home), foreignFolder(home)].find((path) => path === join(home, context));
  if (reserved !== undefined) {
    throw new KcoreError({
      code: "PKI_NAME_INVALID",
      message: `a context cannot be named “${context}”: ${reserved} is something else`,
    });
  }
  const isKnown = Object.hasOwn((await readConfig(plan)).contexts, context);
  const folder = contextFolder(home, context);
  const isTaken = isKnown || (await hasFiles(folder));
  if (isTaken && plan.force !== true) {
    throw new KcoreError({
      code: "PKI_CONTEXT_EXISTS",
      message: `context “${context}” exists already, in ${folder}`,
      hint: isKnown
        ? `choose another name: --context NAME; where kcore.yaml names the project's cluster, change cluster: in it; kcore config delete-context ${context} puts the present one aside`
        : `${configFile(home)} does not name it: look into the folder, then move it away`,
    });
  }
  await ensurePrivateFolder(home);
  let aside: string | undefined;
  await createFolder(folder, async (fresh) => {
    await makeFolder(join(fresh, "issued"), { mode: 0o700 });
    for (const [name, { text, mode }] of files) {
      await makeFolder(dirname(join(fresh, name)), { mode: 0o700 });
      await createFile(join(fresh, name), text, { mode });
    }
    aside = await putAside(folder, plan.now);
  });
  const { "current-context": current } = await changeConfig(plan, (config) => {
    const contexts = { ...config.contexts, [context]: entryOf(plan) };
    const { "current-context": former } = config;
    // Projects that name no cluster use the current context, so a new cluster does not replace it.
    const stays = former !== undefined && Object.hasOwn(contexts, former);
    return { ...config, "current-context": stays ? former : context, contexts };
  });
  return { folder, ...omitUndefined({ current, aside }) };
}

/** A context's entry. Its paths are relative to the configuration's folder, so that folder may move as a whole. */
function entryOf({ context, controllers }: Pick<NewCluster, "context" | "controllers">): Record<string, unknown> {
  const [first] = controllers;
  return {
    ...omitUndefined({ controller: first }),
    controllers: [...controllers],
    ca: `${context}/ca.crt`,
    cert: `${context}/kctl.crt`,
    key: `${context}/kctl.key`,
  };
}

function makeFiles(plan: NewCluster): ContextFiles {
  const { context: cluster, passphrase, now, cost } = plan;
  const notBefore = new Date(now - backdateMs);
  const after = (days: number): Date => new Date(now + days * dayMs);
  const [rootKey, subKey, operatorKey] = [generateKey(), generateKey(), generateKey()];
  const root = issueCertificate({
    commonName: rootCommonName,
    publicKey: createPublicKey(rootKey),
    signer: rootKey,
    notBefore,
    notAfter: after(rootDays),
    pathLength: 1,
  });
  const rootOf = { cluster, certificate: firstCertificate(root), rootPem: root, key: rootKey };
  const sub = signSubCa({ root: rootOf, publicKey: createPublicKey(subKey), now });
  const authority = { cluster, certificate: firstCertificate(sub), certificatePem: sub, rootPem: root, key: subKey };
  const operator = issueOperator({ authority, key: operatorKey, user: plan.operator, now });
  const certificate = (text: string): { text: string; mode: number } => ({ text, mode: 0o644 });
  const secret = (text: string): { text: string; mode: number } => ({ text, mode: 0o600 });
  return new Map([
    ["ca.crt", certificate(root)],
    ["ca.key", secret(encryptKey(rootKey, passphrase, cost))],
    ["sub-ca.crt", certificate(sub)],
    ["sub-ca.key", secret(encryptKey(subKey, passphrase, cost))],
    ["kctl.crt", certificate(operator)],
    ["kctl.key", secret(operatorKey.export({ type: "pkcs8", format: "pem" }) as string)],
    [unfoundedMark, secret(`${JSON.stringify({ created: new Date(now).toISOString() })}\n`)],
  ]);
}

function issueOperator({
  authority,
  key,
  user,
  now,
}: {
  readonly authority: Authority;
  readonly key: KeyObject;
  readonly user: string;
  readonly now: number;
}): string {
  const leaf = issueCertificate({
    commonName: commonNameOf("operator", user),
    publicKey: createPublicKey(key),
    issuer: authority.certificate,
    signer: authority.key,
    notBefore: new Date(now - backdateMs),
    notAfter: endOfLeaf(now),
    usages: ["client"],
    uri: formatIdentity({ cluster: authority.cluster, role: "operator", id: user }),
  });
  return leaf + authority.certificatePem;
}

/**
 * Opens the bastion's sub-CA; everyday work needs no other CA key.
 * @throws KcoreError PKI_PASSPHRASE_WRONG, PKI_KEY_UNREADABLE, PKI_CERT_INVALID, PKI_IDENTITY, FILE_UNREADABLE
 */
export async function openAuthority(folder: string, passphrase: string): Promise<Authority> {
  const { certificate, pem, key, rootPem, cluster } = await openCa(folder, "sub-ca", passphrase);
  return { cluster, certificate, certificatePem: pem, rootPem, key };
}

/**
 * Opens a context's root, which signs sub-CAs, and an operator's leaf after `kcore rotate operator`.
 * @throws KcoreError as openAuthority does
 */
export async function openRoot(folder: string, passphrase: string): Promise<Root> {
  const { certificate, key, rootPem, cluster } = await openCa(folder, "ca", passphrase);
  return { cluster, certificate, rootPem, key };
}

async function openCa(
  folder: string,
  name: "ca" | "sub-ca",
  passphrase: string,
): Promise<{ certificate: X509Certificate; pem: string; key: KeyObject; rootPem: string; cluster: string }> {
  const keyFile = join(folder, `${name}.key`);
  const [rootPem, pem, keyPem, operatorPem] = await Promise.all([
    readText(join(folder, "ca.crt")),
    readText(join(folder, `${name}.crt`)),
    readText(keyFile),
    readText(join(folder, "kctl.crt")),
  ]);
  const key = decryptKey(keyPem, passphrase, keyFile);
  const certificate = firstCertificate(pem);
  if (!isPairOf(certificate, key) || !certificate.verify(firstCertificate(rootPem).publicKey)) {
    const files = name === "ca" ? "ca.crt and ca.key" : "sub-ca.crt, sub-ca.key and ca.crt";
    throw new KcoreError({
      code: "PKI_CERT_INVALID",
      message: `${files} in ${folder} do not belong together`,
      hint: "restore the folder from one backup",
    });
  }
  const { cluster } = identityOf(firstCertificate(operatorPem), "client");
  return { certificate, pem, key, rootPem, cluster };
}

/** Days until a certificate ends, with fractions; negative after its end. */
export function daysLeft(certificate: X509Certificate, now: number): number {
  return (certificate.validToDate.getTime() - now) / dayMs;
}

/**
 * Issues the operator's certificate anew, for the same key, with 30 days or less left; returns whether it did. A certificate that the root
 * itself issued (`kcore rotate operator`) stays: controllers without a record of its key accept it from the root alone.
 */
export async function renewOperatorIfNeeded(folder: string, authority: Authority, now: number): Promise<boolean> {
  const present = firstCertificate(await readText(join(folder, "kctl.crt")));
  if (daysLeft(present, now) > renewDays) return false;
  if (present.verify(firstCertificate(await readText(join(folder, "ca.crt"))).publicKey)) return false;
  await replaceFile(join(folder, "kctl.crt"), await reissueOperator(folder, authority, now), { mode: 0o644 });
  return true;
}

/** Renews the operator's certificate, for the same key and by the same issuer, if it has expired. @throws KcoreError as openRoot does */
export async function reviveOperator(
  folder: string,
  { authority, passphrase, now }: { readonly authority: Authority; readonly passphrase: string; readonly now: number },
): Promise<void> {
  const file = join(folder, "kctl.crt");
  const present = firstCertificate(await readText(file));
  if (daysLeft(present, now) > 0) return;
  const isOfRoot = isIssuedBy(present, firstCertificate(authority.rootPem));
  const issuer = isOfRoot ? { ...(await openRoot(folder, passphrase)), certificatePem: "" } : authority;
  await replaceFile(file, await reissueOperator(folder, issuer, now), { mode: 0o644 });
}

/** A new certificate for the operator's present key, with its chain; nothing is written. */
export async function reissueOperator(folder: string, authority: Authority, now: number): Promise<string> {
  const keyFile = join(folder, "kctl.key");
  const key = readPrivateKey(await readText(keyFile), keyFile);
  const { id } = identityOf(firstCertificate(await readText(join(folder, "kctl.crt"))), "client");
  return issueOperator({ authority, key, user: id, now });
}

/**
 * Gives the operator a new key, certified by the root itself, which every controller accepts without a record of it (ADR 0517); returns
 * the certificate and the former key's fingerprint. A crash between the two files is mended by a second call.
 */
export async function replaceOperatorKey(
  folder: string,
  root: Root,
  now: number,
): Promise<{ readonly certificate: string; readonly formerKey: string }> {
  const former = firstCertificate(await readText(join(folder, "kctl.crt")));
  const { id } = identityOf(former, "client");
  const key = generateKey();
  // The root issues this leaf itself, so its chain has no sub-CA.
  const certificate = issueOperator({ authority: { ...root, certificatePem: "" }, key, user: id, now });
  const pem = key.export({ type: "pkcs8", format: "pem" }) as string;
  await replaceFile(join(folder, "kctl.key"), pem);
  await replaceFile(join(folder, "kctl.crt"), certificate, { mode: 0o644 });
  return { certificate, formerKey: keyFingerprint(publicDer(former.publicKey)) };
}
