import type { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { certificatesOf, firstCertificate, isIssuedBy, isOfBastion } from "./chain.ts";
import { formatIdentity, type Identity } from "./identity.ts";
import { backdateMs, leafDays } from "./issue.ts";
import { readPublicKey } from "./keys.ts";

/** How many days must be left for a certificate to be kept. */
export const renewDays = 30;
const dayMs = 86_400_000;

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
  const isBastions = chain[1] !== undefined && isOfBastion(chain[1], expected.rootPem);
  if (expected.identity.role !== "node" && !isBastions) return "it was not issued on the bastion";
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
  const lifeMs = certificate.validToDate.getTime() - certificate.validFromDate.getTime();
  // Nobody of ours issues such: a stolen sub-CA would, to be kept for ever.
  if (lifeMs > leafDays * dayMs + backdateMs) return `it was issued for more than ${leafDays} days`;
  return certificate.validFromDate.getTime() > expected.now ? "it is not valid yet" : undefined;
}

/** Names and addresses of a certificate in its order, without its identity. */
export function hostsOf({ subjectAltName = "" }: X509Certificate): readonly string[] {
  const hosts = subjectAltName
    .split(", ")
    .filter((name) => /^(?:DNS|IP Address):/.test(name))
    .map((name) => name.replace(/^(?:DNS|IP Address):/, ""));
  return hosts.map((host) => (isIP(host) ? host : host.toLowerCase()));
}

/** Whether a leaf and its one issuer lead to the root, by signature and by time. */
function leadsTo([leaf, sub, ...more]: readonly X509Certificate[], { rootPem, now }: LeafExpectation): boolean {
  if (!leaf || !sub || more.length > 0) return false;
  const root = firstCertificate(rootPem);
  const isCurrent = sub.validFromDate.getTime() <= now && now < sub.validToDate.getTime();
  return isCurrent && sub.ca && isIssuedBy(leaf, sub) && isIssuedBy(sub, root);
}

function tryRead(pem: string): readonly X509Certificate[] {
  try {
    return certificatesOf(pem);
  } catch {
    return [];
  }
}
