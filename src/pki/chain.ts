import { isIP } from "node:net";
import { randomBytes, sign, verify, X509Certificate, type KeyObject } from "node:crypto";
import type { DetailedPeerCertificate, PeerCertificate } from "node:tls";

/** All certificates of a PEM text, in its order. @throws node:crypto's error for an unreadable certificate */
export function certificatesOf(pem: string): readonly X509Certificate[] {
  const texts = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  return texts.map((text) => new X509Certificate(text));
}

/** The certificates of a PEM text; none if any of them is unreadable. */
export function readableCertificates(pem: string): readonly X509Certificate[] {
  try {
    return certificatesOf(pem);
  } catch {
    return [];
  }
}

/** Whether the alternative names of a certificate include this host name or address; its subject does not count. */
export function isForHost(certificate: X509Certificate, host: string): boolean {
  return (isIP(host) ? certificate.checkIP(host) : certificate.checkHost(host, { subject: "never" })) !== undefined;
}

/** The first certificate of a PEM text: of a chain, the leaf. @throws node:crypto's error for a text without a readable one */
export function firstCertificate(pem: string): X509Certificate {
  return new X509Certificate(pem);
}

/** The issuer that a server showed with its certificate, in `checkServerIdentity`; undefined if it showed none. */
export function issuerOf(peer: PeerCertificate): X509Certificate | undefined {
  const { issuerCertificate } = peer as Partial<DetailedPeerCertificate>;
  return issuerCertificate && new X509Certificate(issuerCertificate.raw);
}

/** Whether a certificate names this issuer and carries its signature. */
export function isIssuedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
}

/** Whether a private key belongs to a certificate. It has to sign: the public half in a key file need not belong to the private one. */
export function isPairOf(certificate: X509Certificate, key: KeyObject): boolean {
  const text = randomBytes(32);
  return certificate.checkPrivateKey(key) && verify("sha256", text, certificate.publicKey, sign("sha256", text, key));
}

/** Whether a CA is the root or a sub-CA of the bastion; a controller's sub-CA carries the controller's URI (ADR 0120). */
export function isOfBastion(ca: X509Certificate, rootPem: string): boolean {
  return ca.ca && ca.subjectAltName === undefined && isIssuedBy(ca, firstCertificate(rootPem));
}

/**
 * The reason to refuse the issuer of an operator's or a controller's leaf; undefined: it is accepted. The bastion's CAs are accepted (ADR 0517).
 * So is a controller's sub-CA for the controller's own leaf, within the names that the root wrote into that sub-CA (ADR 0516).
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

/** Whether a controller's sub-CA issued the leaf of the same controller, for names that the sub-CA itself carries. */
function isOwnRenewal(leaf: X509Certificate, subCa: X509Certificate, rootPem: string): boolean {
  const namesIn = (certificate: X509Certificate): readonly string[] => certificate.subjectAltName?.split(", ") ?? [];
  const allowed = new Set(
    namesIn(subCa).map((name) => name.replace(/^(URI:kcore:\/\/[^/]+)\/sub-ca\//, "$1/controller/")),
  );
  const isAllowed = namesIn(leaf).length > 0 && namesIn(leaf).every((name) => allowed.has(name));
  return isAllowed && subCa.ca && isIssuedBy(subCa, firstCertificate(rootPem));
}

/**
 * The root and the bastion's sub-CAs seen so far: they issue on the bastion, controllers have sub-CAs of their own (ADR 0517). TLS alone cannot
 * tell them apart: it accepts any sub-CA, and Node's servers do not expose the chain that a client sent.
 */
export interface BastionCas {
  /** Remembers a CA if the root signed it as one of the bastion's; any peer may have sent it. */
  readonly learn: (ca: X509Certificate | undefined) => void;
  /** Whether the root itself issued a leaf; it does so for operators alone (`kcore rotate operator`). */
  readonly isOfRoot: (leaf: X509Certificate) => boolean;
  /** As refusalOfIssuer, also for issuers seen earlier. `shown`: the CA that the leaf's holder sent as its issuer; it is learned. */
  readonly refusalOf: (leaf: X509Certificate, shown?: X509Certificate) => string | undefined;
}

/** Begins with the root, and with the issuer in `chain` (PEM, leaf first) if that is a CA of the bastion. */
export function knowBastionCas(rootPem: string, chain: string): BastionCas {
  // The map needs no limit: only the holder of the root's key can make such a CA.
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

/** The issuer in a chain (PEM, leaf first), as DER in base64, for a client to send; undefined for a chain without it. */
export function encodeIssuer(chain: string): string | undefined {
  return certificatesOf(chain)[1]?.raw.toString("base64");
}

/** The certificate in a text of encodeIssuer; undefined if the text is absent or of another form. */
export function decodeIssuer(text: string | undefined): X509Certificate | undefined {
  if (text === undefined) return undefined;
  try {
    return new X509Certificate(Buffer.from(text, "base64"));
  } catch {
    return undefined;
  }
}
