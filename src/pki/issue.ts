import type { KeyObject, X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { KcoreError } from "#errors/problem.ts";
import { issueCertificate } from "./certificate.ts";
import { firstCertificate } from "./chain.ts";
import { commonNameOf, formatIdentity, type Identity } from "./identity.ts";
import { isKeyProven, readPublicKey } from "./keys.ts";

/** Days a leaf lives. */
export const leafDays = 90;
/** Clocks of nodes may run behind the bastion's by this much (F-7). */
export const backdateMs = 10 * 60_000;
const dayMs = 86_400_000;
const hostName = /^(?=.{1,253}$)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/i;

/** When a leaf ends that is issued at `now`: in whole seconds, for a certificate holds no parts of one (RFC 5280, 4.1.2.5). */
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
  /** Leaf, then the CA that signed it, in PEM: the holder presents both. */
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
  const publicKey = provenKey(request.spki, request.proof, request.host);
  const hosts = namesOf(request);
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

/** The public key that a request for a certificate is for. @throws KcoreError PKI_PROOF_INVALID, PKI_KEY_KIND */
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
