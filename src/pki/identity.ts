import type { X509Certificate } from "node:crypto";
import { KcoreError } from "#errors/problem.ts";

export const roles = ["controller", "node", "operator"] as const;
/** The role of a certificate's holder in the cluster. */
export type MemberRole = (typeof roles)[number];

/** The identity of a peer: taken from its certificate alone, never from its request. */
export interface MemberIdentity {
  readonly cluster: string;
  readonly role: MemberRole;
  /** A node's or controller's UUID; an operator's user name. */
  readonly id: string;
}

const clusterName = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const idText = /^[A-Za-z0-9](?:[A-Za-z0-9._@-]{0,62}[A-Za-z0-9])?$/;
const identityUri = /^kcore:\/\/([^/]+)\/(controller|node|operator)\/([^/]+)$/;
const commonNames = { controller: "kcore-controller-", node: "kcore-node-", operator: "kctl" } as const;
const usageOids = { server: "1.3.6.1.5.5.7.3.1", client: "1.3.6.1.5.5.7.3.2" } as const;
/** X.520 allows a common name 64 characters (ub-common-name); the full host is in the SAN. */
const commonNameLimit = 64;

/** Whether a text may be a cluster's name: lower-case letters, digits and inner hyphens, at most 63. */
export function isClusterName(text: string): boolean {
  return clusterName.test(text);
}

/** Whether a text may be an id inside an identity URI. */
export function isIdentityId(text: string): boolean {
  return idText.test(text);
}

/** The identity as the SAN URI of its certificate: `kcore://<cluster>/<role>/<id>`. @throws KcoreError PKI_NAME_INVALID */
export function formatIdentity({ cluster, role, id }: MemberIdentity): string {
  if (!isClusterName(cluster) || !isIdentityId(id)) {
    throw new KcoreError({
      code: "PKI_NAME_INVALID",
      message: isClusterName(cluster)
        ? `“${id}” cannot be an id in a certificate`
        : `“${cluster}” cannot be a cluster's name`,
      hint: isClusterName(cluster)
        ? "letters, digits and inner . _ @ - only, at most 64"
        : "lower-case letters, digits and inner hyphens, at most 63",
    });
  }
  return `kcore://${cluster}/${role}/${id}`;
}

/**
 * The SAN URI of a controller's sub-CA: `kcore://<cluster>/sub-ca/<controller's id>`. It names no role, so parseIdentity
 * takes it for no member's. @throws KcoreError PKI_NAME_INVALID
 */
export function formatSubCa(cluster: string, controllerId: string): string {
  return formatIdentity({ cluster, role: "controller", id: controllerId }).replace(/controller(?=\/[^/]+$)/, "sub-ca");
}

/** The identity in a URI of formatIdentity; undefined for any other text. */
export function parseIdentity(uri: string): MemberIdentity | undefined {
  const [, cluster, role, id] = identityUri.exec(uri) ?? [];
  if (cluster === undefined || id === undefined || !isClusterName(cluster) || !isIdentityId(id)) return undefined;
  return { cluster, role: role as MemberRole, id };
}

/** The common name in a certificate's subject: `kcore-node-n1` for a node on the host n1, `kctl` for every operator. */
export function commonNameOf(role: MemberRole, host: string): string {
  return role === "operator" ? commonNames.operator : (commonNames[role] + host).slice(0, commonNameLimit);
}

/**
 * The identity in a certificate that TLS has already verified against our own CA.
 * Checks beyond TLS: it is no CA's, has one common name that fits the role, exactly one identity URI, and the
 * extended key usage for `use` (S-10).
 * @throws KcoreError PKI_IDENTITY
 */
export function identityOf(certificate: X509Certificate, use: "server" | "client"): MemberIdentity {
  const refuse = (reason: string): never => {
    throw new KcoreError({
      code: "PKI_IDENTITY",
      message: `the certificate “${oneLine(certificate.subject)}” ${reason}`,
    });
  };
  if (certificate.ca) refuse("is a CA's, not a member's");
  // Node prints usages as OIDs; OpenSSL accepts a certificate without any, we do not.
  const usages: readonly string[] = certificate.keyUsage ?? [];
  if (!usages.includes(usageOids[use])) refuse(`is not meant for TLS ${use}s`);
  const names = (certificate.subject ?? "").split("\n").filter((line) => line.startsWith("CN="));
  if (names.length !== 1) refuse(`has ${names.length} common names, not one`);
  const identity = onlyIdentity(certificate.subjectAltName ?? "");
  if (identity === undefined) return refuse("does not carry exactly one kcore:// identity");
  const expected = commonNames[identity.role];
  const name = names[0]?.slice("CN=".length) ?? "";
  if (identity.role === "operator" ? name !== expected : !name.startsWith(expected)) {
    refuse(`has a common name that does not fit its role ${identity.role}`);
  }
  return identity;
}

/** Node joins alternative names by “, ” and quotes names with odd characters. kcore's names need no quotes, so quotes are refused. */
function onlyIdentity(alternativeNames: string): MemberIdentity | undefined {
  if (alternativeNames.includes('"')) return undefined;
  const uris = alternativeNames.split(", ").filter((name) => name.startsWith("URI:"));
  return uris.length === 1 ? parseIdentity((uris[0] ?? "").slice("URI:".length)) : undefined;
}

function oneLine(subject: string | undefined): string {
  return (subject ?? "").replaceAll("\n", ", ").slice(0, 200);
}
