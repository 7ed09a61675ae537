import type { KeyObject, X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { KcoreError } from "#errors/problem.ts";
import { issueCertificate } from "./certificate.ts";
import { firstCertificate } from "./chain.ts";
import { commonNameOf, formatIdentity, type MemberIdentity } from "./identity.ts";
import { isKeyProven, readPublicKey } from "./keys.ts";

/** The life of a leaf in days. */
export const leafDays = 90;
/** Certificates begin this much before they are issued: a node's clock may run behind the issuer's (F-7). */
export const backdateMs = 10 * 60_000;
const dayMs = 86_400_000;
const hostName = /^(?=.{1,253}$)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/i;

/** The end of a leaf that is issued at `now`, in whole seconds, as certificates have them (RFC 5280, 4.1.2.5). */
export function endOfLeaf(now: number): Date {
  return new Date(Math.floor(now / 1000) * 1000 + leafDays * dayMs);
}

/** Whether a text may be a host name (RFC 1123). */
export function isHostName(text: string): boolean {
  return hostName.test(text);
}

/** An issuing CA with its opened key. */
export interface Authority {
  readonly cluster: string;
  readonly certificate: X509Certificate;
  readonly certificatePem: string;
  /** The root certificate, which every member of the cluster trusts. */
  readonly rootPem: string;
  readonly key: KeyObject;
}

/** Proves that the holder of a public key has the private half. */
export interface KeyProof {
  /** A text that the issuer chose. */
  readonly challenge: string;
  /** The private half's ECDSA signature over the challenge with SHA-256: DER in base64. */
  readonly signature: string;
}

export interface LeafRequest {
  readonly role: "controller" | "node";
  /** The UUID of the node or controller. */
  readonly id: string;
  /** The name or address in the common name; also the first alternative name. */
  readonly host: string;
  /** Further names and addresses under which clients reach the node. */
  readonly addresses?: readonly string[];
  /** The public key, made where it will be used: PEM or base64 DER. */
  readonly spki: string;
  readonly proof: KeyProof;
}

export interface IssuedLeaf {
  /** Leaf, then the CA that signed it, in PEM: the holder presents both. */
  readonly chain: string;
  readonly identity: MemberIdentity;
  readonly serial: string;
  readonly notAfter: Date;
}

/**
 * Issues a controller's or node's certificate for TLS both ways: 90 days, or until its CA ends. Names are decided here (S-14).
 * @throws KcoreError PKI_PROOF_INVALID, PKI_KEY_KIND, PKI_NAME_INVALID
 */
export function issueLeaf(request: LeafRequest, { authority, now }: { authority: Authority; now: number }): IssuedLeaf {
  const publicKey = provenKey(request.spki, request.proof, request.host);
  const hosts = certificateNames(request);
  const identity = { cluster: authority.cluster, role: request.role, id: request.id };
  const notAfter = new Date(Math.min(endOfLeaf(now).getTime(), authority.certificate.validToDate.getTime()));
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

/** The public key of a request for a certificate, once its proof holds; `who` names the holder in the error. @throws KcoreError PKI_PROOF_INVALID, PKI_KEY_KIND */
export function provenKey(spki: string, { challenge, signature }: KeyProof, who: string): KeyObject {
  const publicKey = readPublicKey(spki);
  if (isKeyProven(publicKey, challenge, signature)) return publicKey;
  throw new KcoreError({
    code: "PKI_PROOF_INVALID",
    message: `${who} did not prove that it holds the private key of the certificate it asks for`,
    hint: "remove the key file on the node and run again: a new key is made there",
  });
}

/** The alternative names of a leaf, each once, in lower case. @throws KcoreError PKI_NAME_INVALID */
export function certificateNames({ host, addresses = [] }: Pick<LeafRequest, "host" | "addresses">): readonly string[] {
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
