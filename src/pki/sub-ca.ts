import type { KeyObject, X509Certificate } from "node:crypto";
import { omitUndefined } from "#base/omit-undefined.ts";
import { KcoreError } from "#errors/problem.ts";
import { issueCertificate } from "./certificate.ts";
import { firstCertificate, readableCertificates } from "./chain.ts";
import { formatSubCa } from "./identity.ts";
import { backdateMs, type Authority, type KeyProof } from "./issue.ts";
import { isKeyProven, readPrivateKey, readPublicKey } from "./keys.ts";

const dayMs = 86_400_000;
export const subCommonName = "kcore-cluster-sub-ca";
export const subCaDays = 1825;
/** A sub-CA with this many days left, or fewer, is replaced: its leaves live 90 days, and never longer than the sub-CA. */
export const subCaRenewDays = 180;

/** The cluster's root with its opened key, which exists only in the memory of commands on the bastion. */
export interface Root {
  readonly cluster: string;
  readonly certificate: X509Certificate;
  readonly rootPem: string;
  readonly key: KeyObject;
}

export interface SubCaRequest {
  readonly controllerId: string;
  /** The public key, made on the controller: PEM or base64 DER. */
  readonly spki: string;
  readonly proof: KeyProof;
  /** The names and addresses under which the controller may renew its own certificate (ADR 0516). */
  readonly hosts: readonly string[];
}

/**
 * Signs a controller's own sub-CA: path length 0, and only for URIs of this cluster (S-14).
 * @throws KcoreError PKI_PROOF_INVALID, PKI_KEY_KIND, PKI_NAME_INVALID
 */
export function issueSubCa(
  { controllerId, spki, proof, hosts }: SubCaRequest,
  { root, now }: { root: Root; now: number },
): string {
  const publicKey = readPublicKey(spki);
  if (!isKeyProven(publicKey, proof.challenge, proof.signature)) {
    throw new KcoreError({
      code: "PKI_PROOF_INVALID",
      message: `controller ${controllerId} did not prove that it holds the private key of the sub-CA it asks for`,
      hint: "remove /etc/kcore/controller/sub-ca.key there and deploy it again: a new key is made",
    });
  }
  return signSubCa({ root, publicKey, now, uri: formatSubCa(root.cluster, controllerId), hosts });
}

/** A sub-CA's certificate in PEM; without `uri` and `hosts` it is the bastion's own. */
export function signSubCa({
  root,
  publicKey,
  now,
  uri,
  hosts,
}: {
  readonly root: Root;
  readonly publicKey: KeyObject;
  readonly now: number;
  readonly uri?: string;
  readonly hosts?: readonly string[];
}): string {
  return issueCertificate({
    commonName: subCommonName,
    publicKey,
    issuer: root.certificate,
    signer: root.key,
    notBefore: new Date(now - backdateMs),
    notAfter: new Date(Math.min(now + subCaDays * dayMs, root.certificate.validToDate.getTime())),
    pathLength: 0,
    permittedUriHost: root.cluster,
    ...omitUndefined({ uri, hosts }),
  });
}

/**
 * A controller's sub-CA from its files, ready to issue: the key fits the certificate, and the root signed it for this
 * very controller. @throws KcoreError PKI_KEY_UNREADABLE, PKI_CERT_INVALID
 */
export function readSubCa({
  cluster,
  controllerId,
  rootPem,
  certificatePem,
  keyPem,
  where,
}: {
  readonly cluster: string;
  readonly controllerId: string;
  readonly rootPem: string;
  readonly certificatePem: string;
  readonly keyPem: string;
  /** The key's file, for problems. */
  readonly where: string;
}): Authority {
  const key = readPrivateKey(keyPem, where);
  const reason = refusalOfSubCa(certificatePem, { cluster, controllerId, rootPem });
  const certificate = reason === undefined ? firstCertificate(certificatePem) : undefined;
  if (certificate?.checkPrivateKey(key)) return { cluster, certificate, certificatePem, rootPem, key };
  throw new KcoreError({
    code: "PKI_CERT_INVALID",
    message: `the sub-CA beside ${where} cannot be used: ${reason ?? "the key is not its own"}`,
    hint: "deploy the controller again, or on the bastion: kcore rotate sub-ca",
  });
}

/** The reason why a text is not this controller's sub-CA under this root; undefined: it is. */
export function refusalOfSubCa(
  pem: string,
  {
    cluster,
    controllerId,
    rootPem,
  }: { readonly cluster: string; readonly controllerId: string; readonly rootPem: string },
): string | undefined {
  const found = readableCertificates(pem);
  const [certificate] = found;
  if (certificate === undefined || found.length > 1) return "it is not exactly one certificate";
  const root = firstCertificate(rootPem);
  if (!certificate.ca) return "it is no CA";
  if (!certificate.checkIssued(root) || !certificate.verify(root.publicKey))
    return "the cluster's root did not sign it";
  const uris = (certificate.subjectAltName ?? "").split(", ").filter((name) => name.startsWith("URI:"));
  return uris.length === 1 && uris[0] === `URI:${formatSubCa(cluster, controllerId)}`
    ? undefined
    : "it is not this controller's";
}
