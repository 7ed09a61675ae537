import type { X509Certificate } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { ifThere } from "#base/file.ts";
import { certificatesOf, firstCertificate, isForHost } from "./chain.ts";
import { hostsOf } from "./expectation.ts";
import { keyFingerprint, publicDer } from "./keys.ts";
import { parseIdentity, type MemberRole } from "./identity.ts";

/**
 * The keys (SHA-256 of the SPKI) of the controllers whose certificates this machine issued for a host, the latest first;
 * empty when another machine issued them. They are read from this machine's files, so no controller has to be trusted.
 */
export async function issuedControllerKeys(folder: string, host: string): Promise<readonly string[]> {
  const issued = join(folder, "issued");
  const names = (await ifThere(readdir(issued))) ?? [];
  const files = names.filter((name) => name.endsWith("-controller.crt"));
  const certificates = await Promise.all(files.map((name) => readCertificate(join(issued, name))));
  return certificates
    .filter((certificate) => certificate !== undefined)
    .filter((certificate) => isForHost(certificate, host))
    .toSorted((a, b) => b.validFromDate.getTime() - a.validFromDate.getTime())
    .map(({ publicKey }) => keyFingerprint(publicDer(publicKey)));
}

/**
 * The keys of the certificates that this machine issued to a controller: the present one, and the one of a rotation that is
 * under way or was interrupted. Empty when another machine issued them.
 */
export async function keysIssuedTo(folder: string, controllerId: string): Promise<readonly string[]> {
  const files = [issuedFile(folder, controllerId, "controller"), nextIssuedFile(folder, controllerId)];
  const certificates = await Promise.all(files.map(readCertificate));
  return certificates.flatMap((certificate) => (certificate ? [keyFingerprint(publicDer(certificate.publicKey))] : []));
}

/** The names and addresses in a controller's present certificate; empty when another machine issued it. */
export async function hostsIssuedTo(folder: string, controllerId: string): Promise<readonly string[]> {
  const certificate = await readCertificate(issuedFile(folder, controllerId, "controller"));
  return certificate ? hostsOf(certificate) : [];
}

/** The file of a certificate that this machine issued to a node, a controller or a controller's sub-CA. */
export function issuedFile(folder: string, id: string, kind: "controller" | "node" | "sub-ca"): string {
  return join(folder, "issued", `${id}-${kind}.crt`);
}

/** The file of the certificate that an unfinished rotation gives a controller. */
export function nextIssuedFile(folder: string, controllerId: string): string {
  return join(folder, "issued", `${controllerId}-controller-next.crt`);
}

/** An unreadable file counts as missing: the next deployment issues its certificate anew. */
async function readCertificate(file: string): Promise<X509Certificate | undefined> {
  try {
    return firstCertificate(await readFile(file, "utf8"));
  } catch {
    return undefined;
  }
}

/** The cluster's record of an issued certificate, without the certificate itself. */
export interface CertificateEntry {
  /** Lower-case hex. */
  readonly serial: string;
  /** SHA-256 of the public key, lower-case hex. */
  readonly spki: string;
  readonly role: MemberRole | "sub-ca";
  /** The holder's id; for a sub-CA, its controller's. */
  readonly id: string;
  /** Common name of the CA that issued it. */
  readonly issuer: string;
  /** ISO 8601 in UTC. */
  readonly notAfter: string;
}

/** The entry of a PEM text's first certificate; undefined if it names no kcore identity. @throws node:crypto's error if it is unreadable */
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
  const asMember = text.replace(/sub-ca(?=\/[^/]+$)/, "controller");
  const identity = parseIdentity(asMember);
  return identity && { role: asMember === text ? identity.role : "sub-ca", id: identity.id };
}
