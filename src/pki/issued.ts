import type { X509Certificate } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { isIP } from "node:net";
import { join } from "node:path";
import { ifThere } from "#base/file.ts";
import { firstCertificate } from "./chain.ts";
import { hostsOf } from "./expectation.ts";
import { keyFingerprint, publicDer } from "./keys.ts";

/**
 * The keys (SHA-256 of the SPKI) of the controllers whose certificates this machine issued for a host, the latest first;
 * empty when another machine issued them. No word of a controller is needed for it.
 */
export async function issuedControllerKeys(folder: string, host: string): Promise<readonly string[]> {
  const issued = join(folder, "issued");
  const names = (await ifThere(readdir(issued))) ?? [];
  const files = names.filter((name) => name.endsWith("-controller.crt"));
  const certificates = await Promise.all(files.map((name) => readCertificate(join(issued, name))));
  return certificates
    .filter((certificate) => certificate !== undefined)
    .filter((certificate) => isFor(certificate, host))
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

/** The names and addresses in the certificate that this machine issued to a controller last; empty when another machine issued it. */
export async function hostsIssuedTo(folder: string, controllerId: string): Promise<readonly string[]> {
  const certificate = await readCertificate(issuedFile(folder, controllerId, "controller"));
  return certificate ? hostsOf(certificate) : [];
}

/** The file of a certificate that this machine issued to a node, or to its controller. */
export function issuedFile(folder: string, id: string, kind: "controller" | "node" | "sub-ca"): string {
  return join(folder, "issued", `${id}-${kind}.crt`);
}

/** Where the one is kept that a rotation is about to put in its place. */
export function nextIssuedFile(folder: string, controllerId: string): string {
  return join(folder, "issued", `${controllerId}-controller-next.crt`);
}

/** A file that cannot be read is none of a controller's: it is issued anew with the next deployment. */
async function readCertificate(file: string): Promise<X509Certificate | undefined> {
  try {
    return firstCertificate(await readFile(file, "utf8"));
  } catch {
    return undefined;
  }
}

function isFor(certificate: X509Certificate, host: string): boolean {
  const name = isIP(host) ? certificate.checkIP(host) : certificate.checkHost(host, { subject: "never" });
  return name !== undefined;
}
