import type { X509Certificate } from "node:crypto";
import { certificatesOf } from "./chain.ts";
import { parseIdentity, type Role } from "./identity.ts";
import { keyFingerprint, publicDer } from "./keys.ts";

/** The cluster's record of an issued certificate: everything but the certificate. */
export interface CertificateEntry {
  /** Lower-case hex. */
  readonly serial: string;
  /** SHA-256 of the public key, lower-case hex. */
  readonly spki: string;
  readonly role: Role | "sub-ca";
  /** The holder's; of a sub-CA its controller's. */
  readonly id: string;
  /** Common name of the CA that issued it. */
  readonly issuer: string;
  /** ISO 8601 in UTC. */
  readonly notAfter: string;
}

/** The entry of a PEM text's first certificate; undefined when that is none of the cluster's. */
export function inventoryEntry(pem: string): CertificateEntry | undefined {
  const [certificate] = certificatesOf(pem);
  const holder = certificate && holderOf(certificate);
  if (!certificate || !holder) return undefined;
  return {
    serial: certificate.serialNumber.toLowerCase(),
    spki: keyFingerprint(publicDer(certificate.publicKey)),
    ...holder,
    issuer: certificate.issuer.replace(/^CN=/, ""),
    notAfter: certificate.validToDate.toISOString(),
  };
}

function holderOf({ subjectAltName = "" }: X509Certificate): Pick<CertificateEntry, "role" | "id"> | undefined {
  const [uri] = subjectAltName.split(", ").filter((name) => name.startsWith("URI:"));
  const text = uri?.slice("URI:".length) ?? "";
  const identity = parseIdentity(text.replace("/sub-ca/", "/controller/"));
  return identity && { role: text.includes("/sub-ca/") ? "sub-ca" : identity.role, id: identity.id };
}
