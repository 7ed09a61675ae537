import type { KeyObject, X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { KcoreError } from "#errors/problem.ts";
import { certificatesOf, firstCertificate, issueCertificate } from "./certificate.ts";
import { commonNameOf, formatIdentity } from "./identity.ts";
import type { Identity } from "./identity.ts";
import { isKeyProven, readPublicKey } from "./keys.ts";

/** Days a leaf lives, and how many must be left for it to be kept. */
export const leafDays = 90;
export const renewDays = 30;
/** Clocks of nodes may run behind the bastion's by this much (F-7). */
export const backdateMs = 10 * 60_000;
const dayMs = 86_400_000;
const hostName = /^(?=.{1,253}$)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/i;

/** Whether a text may be a host name (RFC 1123). */
export function isHostName(text: string): boolean {
  return hostName.test(text);
}

/** An issuing CA with its opened key. */
export interface Authority {
  readonly cluster: string;
  readonly certificate: X509Certificate;
  readonly certificatePem: string;
  /** The root certificate, which everybody in the cluster trusts. */
  readonly rootPem: string;
  readonly key: KeyObject;
}

/** The signature by a key's private half over a challenge that the issuer chose: base64 DER ECDSA with SHA-256. */
export interface KeyProof {
  readonly challenge: string;
  readonly signature: string;
}

export interface LeafRequest {
  readonly role: "controller" | "node";
  /** The node's UUID. */
  readonly id: string;
  /** The name or address in the common name, first of the alternative names. */
  readonly host: string;
  /** Further names and addresses under which it is reached. */
  readonly addresses?: readonly string[];
  /** The public key, made where it will be used: PEM or base64 DER. */
  readonly spki: string;
  readonly proof: KeyProof;
}

export interface IssuedLeaf {
  /** Leaf, then the CA that signed it, in PEM: what its holder presents. */
  readonly chain: string;
  readonly identity: Identity;
  readonly serial: string;
  readonly notAfter: Date;
}

/**
 * Issues a controller's or node's certificate: 90 days, for TLS both ways, names decided here (S-14).
 * @throws KcoreError PKI_PROOF_INVALID, PKI_KEY_KIND, PKI_NAME_INVALID
 */
export function issueLeaf(request: LeafRequest, { authority, now }: { authority: Authority; now: number }): IssuedLeaf {
  const publicKey = readPublicKey(request.spki);
  if (!isKeyProven(publicKey, request.proof.challenge, request.proof.signature)) {
    throw new KcoreError({
      code: "PKI_PROOF_INVALID",
      message: `${request.host} did not prove that it holds the private key of the certificate it asks for`,
      hint: "remove the key file on the node and run again: a new key is made there",
    });
  }
  const hosts = namesOf(request);
  const identity = { cluster: authority.cluster, role: request.role, id: request.id };
  const notAfter = new Date(Math.min(now + leafDays * dayMs, authority.certificate.validToDate.getTime()));
  const leaf = issueCertificate({
    commonName: commonNameOf(request.role, request.host),
    publicKey,
    issuer: authority.certificate,
    signer: authority.key,
    notBefore: new Date(now - backdateMs),
    notAfter,
    usages: ["server", "client"],
    hosts,
    uri: formatIdentity(identity),
  });
  return {
    chain: leaf + authority.certificatePem,
    identity,
    serial: firstCertificate(leaf).serialNumber.toLowerCase(),
    notAfter,
  };
}

/** The alternative names of a leaf, each once, in lower case. @throws KcoreError PKI_NAME_INVALID */
export function namesOf({ host, addresses = [] }: Pick<LeafRequest, "host" | "addresses">): readonly string[] {
  const names = [...new Set([host, ...addresses].map((name) => name.toLowerCase()))];
  for (const name of names) {
    if (isIP(name) || hostName.test(name)) continue;
    throw new KcoreError({
      code: "PKI_NAME_INVALID",
      message: `“${name}” is neither a host name nor an IP address, so no certificate can carry it`,
      hint: "correct the node's address in the roster",
    });
  }
  return names;
}

/** What a certificate must still be to be kept. */
export interface LeafExpectation {
  readonly spki: string;
  readonly hosts: readonly string[];
  readonly identity: Identity;
  /** The cluster's root in PEM: the bastion's sub-CA or a controller's may have issued it. */
  readonly rootPem: string;
  readonly now: number;
}

/** Why a certificate has to be issued anew, in words; undefined: it is kept. */
export function renewalReason(pem: string, expected: LeafExpectation): string | undefined {
  const chain = tryRead(pem);
  const [certificate] = chain;
  if (!certificate) return "it cannot be read";
  if (!leadsTo(chain, expected)) return "another CA issued it";
  const publicKey = certificate.publicKey.export({ type: "spki", format: "der" });
  if (!publicKey.equals(readPublicKey(expected.spki).export({ type: "spki", format: "der" }))) return "the key changed";
  const names = (certificate.subjectAltName ?? "").split(", ");
  const uris = names.filter((name) => name.startsWith("URI:"));
  const isNamed = (host: string): boolean =>
    (isIP(host) ? certificate.checkIP(host) : certificate.checkHost(host, { subject: "never" })) !== undefined;
  if (uris.length !== 1 || uris[0] !== `URI:${formatIdentity(expected.identity)}`) return "its identity changed";
  if (names.length !== expected.hosts.length + 1 || !expected.hosts.every(isNamed)) return "its names changed";
  const daysLeft = (certificate.validToDate.getTime() - expected.now) / dayMs;
  if (daysLeft <= renewDays) return daysLeft <= 0 ? "it expired" : `it expires in ${Math.floor(daysLeft)} days`;
  return certificate.validFromDate.getTime() > expected.now ? "it is not valid yet" : undefined;
}

/** Whether a certificate has to be issued anew: 30 days or less left, or key, names, identity or issuer differ. */
export function needsRenewal(pem: string, expected: LeafExpectation): boolean {
  return renewalReason(pem, expected) !== undefined;
}

/** Whether a leaf and its one issuer lead to the root, by signature and by time. */
function leadsTo([leaf, sub, ...more]: readonly X509Certificate[], { rootPem, now }: LeafExpectation): boolean {
  if (!leaf || !sub || more.length > 0) return false;
  const root = firstCertificate(rootPem);
  const isCurrent = sub.validFromDate.getTime() <= now && now < sub.validToDate.getTime();
  return isCurrent && sub.ca && isIssuedBy(leaf, sub) && isIssuedBy(sub, root);
}

function isIssuedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
}

function tryRead(pem: string): readonly X509Certificate[] {
  try {
    return certificatesOf(pem);
  } catch {
    return [];
  }
}
