import { isIP } from "node:net";
import { randomBytes, sign, verify, X509Certificate, type KeyObject } from "node:crypto";
import type { DetailedPeerCertificate, PeerCertificate } from "node:tls";

/** All certificates of a PEM text, in its order. Throws node:crypto's error when one cannot be read. */
export function certificatesOf(pem: string): readonly X509Certificate[] {
  const texts = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  return texts.map((text) => new X509Certificate(text));
}

/** The certificates of a PEM text; none when one of them cannot be read. */
export function readableCertificates(pem: string): readonly X509Certificate[] {
  try {
    return certificatesOf(pem);
  } catch {
    return [];
  }
}

/** Whether a certificate is for this name or address. */
export function isForHost(certificate: X509Certificate, host: string): boolean {
  return (isIP(host) ? certificate.checkIP(host) : certificate.checkHost(host, { subject: "never" })) !== undefined;
}

/** The first certificate of a PEM text: of a chain, the leaf. Throws node:crypto's error when there is none. */
export function firstCertificate(pem: string): X509Certificate {
  return new X509Certificate(pem);
}

/** The issuer that a server showed with its certificate, in `checkServerIdentity`. */
export function issuerOf(peer: PeerCertificate): X509Certificate | undefined {
  const { issuerCertificate } = peer as Partial<DetailedPeerCertificate>;
  return issuerCertificate && new X509Certificate(issuerCertificate.raw);
}

/** Whether a certificate names this issuer and carries its signature. */
export function isIssuedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
}

/** Whether the key signs for the certificate. A key file also has a public half, which need not belong to its private half. */
export function isPairOf(certificate: X509Certificate, key: KeyObject): boolean {
  const text = randomBytes(32);
  return certificate.checkPrivateKey(key) && verify("sha256", text, certificate.publicKey, sign("sha256", text, key));
}

/** Whether a CA is the root or a sub-CA of the bastion; a controller's sub-CA carries the controller's URI (ADR 0120). */
export function isOfBastion(ca: X509Certificate, rootPem: string): boolean {
  return ca.ca && ca.subjectAltName === undefined && isIssuedBy(ca, firstCertificate(rootPem));
}

/**
 * Why the leaf of an operator or a controller is not accepted from its issuer; undefined: it is. Accepted are the bastion (ADR 0517), and a
 * controller's own sub-CA within the names that the root wrote into that sub-CA (ADR 0516).
 */
export function refusalOfIssuer(
  leaf: X509Certificate,
  { issuer, rootPem }: { readonly issuer: X509Certificate | undefined; readonly rootPem: string },
): string | undefined {
  if (issuer === undefined || !isIssuedBy(leaf, issuer)) return "does not come with the CA that issued it";
  return isOfBastion(issuer, rootPem) || isOwnRenewal(leaf, issuer, rootPem)
    ? undefined
    : "was not issued on the bastion";
}

/** Whether a controller's sub-CA certified that same controller, under names that the sub-CA itself carries. */
function isOwnRenewal(leaf: X509Certificate, subCa: X509Certificate, rootPem: string): boolean {
  const named = (certificate: X509Certificate): readonly string[] => certificate.subjectAltName?.split(", ") ?? [];
  const allowed = new Set(
    named(subCa).map((name) => name.replace(/^(URI:kcore:\/\/[^/]+)\/sub-ca\//, "$1/controller/")),
  );
  const isAllowed = named(leaf).length > 0 && named(leaf).every((name) => allowed.has(name));
  return isAllowed && subCa.ca && isIssuedBy(subCa, firstCertificate(rootPem));
}

/**
 * The CAs of the bastion: the root, and the bastion's own sub-CAs that were seen. A certificate of theirs was issued on the bastion, not by a
 * controller (ADR 0517). TLS alone cannot decide this: it accepts any sub-CA, and Node's servers do not expose the chain that a client sent.
 */
export interface BastionCas {
  /** Remembers a CA if it is one of the bastion's, by the root's signature; any peer may have brought it. */
  readonly learn: (ca: X509Certificate | undefined) => void;
  /** Whether the root itself issued a leaf, which it does only for an operator's new key. */
  readonly isOfRoot: (leaf: X509Certificate) => boolean;
  /** Why a leaf is not accepted, as refusalOfIssuer; undefined: it is. `shown`: the CA that its holder sent as the issuer. */
  readonly refusalOf: (leaf: X509Certificate, shown?: X509Certificate) => string | undefined;
}

/** `chain`: a PEM text of a leaf and the CA that issued it, which is learned. */
export function knowBastionCas(rootPem: string, chain: string): BastionCas {
  // No limit is needed: only the holder of the root's key can make such a CA.
  const known = new Map<string, X509Certificate>();
  const learn: BastionCas["learn"] = (ca) => {
    if (ca && isOfBastion(ca, rootPem)) known.set(ca.fingerprint256, ca);
  };
  const root = firstCertificate(rootPem);
  learn(root);
  learn(certificatesOf(chain)[1]);
  return {
    learn,
    isOfRoot: (leaf) => isIssuedBy(leaf, root),
    refusalOf(leaf, shown) {
      learn(shown);
      for (const ca of known.values()) if (isIssuedBy(leaf, ca)) return undefined;
      return refusalOfIssuer(leaf, { issuer: shown, rootPem });
    },
  };
}

/** The CA that issued a chain's leaf, as DER in base64, for a client to send; undefined for a chain without one. */
export function encodeIssuer(chain: string): string | undefined {
  return certificatesOf(chain)[1]?.raw.toString("base64");
}

/** @see encodeIssuer; undefined for a text of another form. */
export function decodeIssuer(text: string | undefined): X509Certificate | undefined {
  if (text === undefined) return undefined;
  try {
    return new X509Certificate(Buffer.from(text, "base64"));
  } catch {
    return undefined;
  }
}
