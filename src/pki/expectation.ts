import type { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { firstCertificate, isForHost, isIssuedBy, readableCertificates, refusalOfIssuer } from "./chain.ts";
import { formatIdentity, type MemberIdentity } from "./identity.ts";
import { backdateMs, leafDays } from "./issue.ts";
import { readPublicKey } from "./keys.ts";

/** A certificate with this many days left, or fewer, is renewed. */
export const renewDays = 30;
const dayMs = 86_400_000;

/** The properties of a certificate that need not be issued anew. */
export interface LeafExpectation {
  readonly spki: string;
  readonly hosts: readonly string[];
  readonly identity: MemberIdentity;
  /** The cluster's root in PEM; the certificate may come from the bastion's sub-CA or a controller's. */
  readonly rootPem: string;
  readonly now: number;
}

/** The reason to issue a certificate (PEM, with its issuer) anew, in words; undefined: it fits. */
export function renewalReason(pem: string, expected: LeafExpectation): string | undefined {
  const chain = readableCertificates(pem);
  const [certificate] = chain;
  if (!certificate) return "it cannot be read";
  if (!leadsToRoot(chain, expected)) return "another CA issued it";
  const refusal = refusalOfIssuer(certificate, { issuer: chain[1], rootPem: expected.rootPem });
  if (expected.identity.role !== "node" && refusal !== undefined) return `it ${refusal}`;
  const publicKey = certificate.publicKey.export({ type: "spki", format: "der" });
  if (!publicKey.equals(readPublicKey(expected.spki).export({ type: "spki", format: "der" }))) return "the key changed";
  const uris = namesIn(certificate).filter((name) => name.startsWith("URI:"));
  if (uris.length !== 1 || uris[0] !== `URI:${formatIdentity(expected.identity)}`) return "its identity changed";
  if (!namesExactly(certificate, expected.hosts)) return "its names changed";
  const daysLeft = (certificate.validToDate.getTime() - expected.now) / dayMs;
  if (daysLeft <= renewDays) return daysLeft <= 0 ? "it expired" : `it expires in ${Math.floor(daysLeft)} days`;
  const lifeMs = certificate.validToDate.getTime() - certificate.validFromDate.getTime();
  // No certificate of kcore's lives longer. A thief of a sub-CA could issue one that would never be renewed.
  if (lifeMs > leafDays * dayMs + backdateMs) return `it was issued for more than ${leafDays} days`;
  return certificate.validFromDate.getTime() > expected.now ? "it is not valid yet" : undefined;
}

/** The reason why a new certificate must not replace the present one, in words; undefined: it may. */
export function refusalOfNext(
  certificate: string,
  { spki, present, now }: { readonly spki: string; readonly present: PresentLeaf; readonly now: number },
): string | undefined {
  const { identity, ca: rootPem, cert, notAfter } = present;
  const leaf = firstCertificate(cert);
  const reason = renewalReason(certificate, { spki, hosts: hostsOf(leaf), identity, rootPem, now });
  // A short-lived certificate is still better than the present one, if it ends later.
  const isShort = reason?.startsWith("it expires in") === true;
  if (reason !== undefined && !isShort) return reason;
  // A clock that was ahead made the present certificate start in the future: any valid one is better, however soon it ends.
  if (leaf.validFromDate.getTime() > now) return undefined;
  return firstCertificate(certificate).validToDate > notAfter ? undefined : "it ends no later than the present one";
}

/** The certificate that a daemon uses (`cert`), and the cluster's root (`ca`), in PEM. */
interface PresentLeaf {
  readonly identity: MemberIdentity;
  readonly ca: string;
  readonly cert: string;
  readonly notAfter: Date;
}

/** Whether a certificate names these hosts and its one URI, and nothing else. */
export function namesExactly(certificate: X509Certificate, hosts: readonly string[]): boolean {
  return namesIn(certificate).length === hosts.length + 1 && hosts.every((host) => isForHost(certificate, host));
}

function namesIn({ subjectAltName = "" }: X509Certificate): readonly string[] {
  return subjectAltName.split(", ");
}

/** The names and addresses of a certificate, in its order; names in lower case. */
export function hostsOf(certificate: X509Certificate): readonly string[] {
  const hosts = namesIn(certificate)
    .filter((name) => /^(?:DNS|IP Address):/.test(name))
    .map((name) => name.replace(/^(?:DNS|IP Address):/, ""));
  return hosts.map((host) => (isIP(host) ? host : host.toLowerCase()));
}

/** Whether a chain is a leaf and one CA, which the root signed and which is valid now. */
function leadsToRoot([leaf, sub, ...more]: readonly X509Certificate[], { rootPem, now }: LeafExpectation): boolean {
  if (!leaf || !sub || more.length > 0) return false;
  const root = firstCertificate(rootPem);
  const isCurrent = sub.validFromDate.getTime() <= now && now < sub.validToDate.getTime();
  return isCurrent && sub.ca && isIssuedBy(leaf, sub) && isIssuedBy(sub, root);
}

/** A certificate with this many days left, or fewer, counts as a failure. */
const failDays = 2;
/** Days left at which an operator is warned of a certificate, the most urgent first. */
export const endDays = [failDays, 7, 14, 30] as const;

/** A certificate to warn of, and the words that name it, such as “the operator's certificate”. */
export interface WatchedCertificate {
  readonly what: string;
  readonly notAfter: Date;
  /** The way to another certificate, such as a command. */
  readonly way: string;
}

export interface ExpiryWarning {
  /** The lowest of `endDays` that the certificate has reached. */
  readonly days: (typeof endDays)[number];
  readonly isFailure: boolean;
  readonly message: string;
}

/** The warning of a certificate with 30 days or less left; undefined for one with more. */
export function expiryWarning({ what, notAfter, way }: WatchedCertificate, now: number): ExpiryWarning | undefined {
  const daysLeft = (notAfter.getTime() - now) / dayMs;
  const days = endDays.find((limit) => daysLeft <= limit);
  if (days === undefined) return undefined;
  const whole = Math.floor(daysLeft);
  const when = daysLeft <= 0 ? "ended" : whole === 1 ? "ends in 1 day, " : `ends in ${whole} days, `;
  const at = `${daysLeft <= 0 ? " " : ""}on ${notAfter.toISOString().slice(0, 10)}`;
  return { days, isFailure: days === failDays, message: `${what} ${when}${at}: ${way}` };
}
