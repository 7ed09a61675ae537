import { X509Certificate } from "node:crypto";
import { createSecureContext, type PeerCertificate } from "node:tls";
import { exitCodes, KcoreError } from "#errors/problem.ts";
import { issuerOf, refusalOfIssuer } from "#pki/chain.ts";
import { identityOf } from "#pki/identity.ts";
import { keyFingerprint, publicDer } from "#pki/keys.ts";
import { formatEndpoint, type ApiEndpoint } from "./endpoint.ts";
import { isInGrace } from "./late-renewal.ts";

/** The reason why a server is no controller of this cluster, as an error; undefined for a controller. */
export function checkRole(
  peer: PeerCertificate,
  { cluster, rootPem }: { readonly cluster: string; readonly rootPem: string },
): Error | undefined {
  try {
    const certificate = new X509Certificate(peer.raw);
    const identity = identityOf(certificate, "server");
    if (identity.role !== "controller") return untrusted(`it is a ${identity.role}, not a controller`);
    if (identity.cluster !== cluster) return untrusted(`it belongs to the cluster “${identity.cluster}”`);
    const refusal = refusalOfIssuer(certificate, { issuer: issuerOf(peer), rootPem });
    return refusal === undefined ? undefined : untrusted(`its certificate ${refusal}`);
  } catch (error) {
    return untrusted(error instanceof Error ? error.message : String(error));
  }
}

/** An error if a server's key is not among the `expected` fingerprints; undefined if it is, or without `expected`. */
export function checkKey(peer: PeerCertificate, expected: readonly string[] | undefined): Error | undefined {
  const key = keyFingerprint(publicDer(new X509Certificate(peer.raw).publicKey));
  return expected?.includes(key) === false
    ? untrusted(`it shows another key (${key}) than the one that was issued to it`)
    : undefined;
}

function untrusted(reason: string): Error {
  return Object.assign(new Error(reason), { code: "ERR_TLS_IDENTITY" });
}

/**
 * Refuses credentials that do not fit together or have expired. True for a node's expired ones during the grace period: the node may renew them,
 * and do nothing else (F-25). @throws KcoreError CONFIG_INVALID, API_UNTRUSTED, PKI_IDENTITY
 */
export function checkCredentials(
  { ca, cert, key }: Readonly<Record<"ca" | "cert" | "key", string>>,
  now: number,
): boolean {
  try {
    createSecureContext({ ca, cert, key });
  } catch (error) {
    throw new KcoreError(
      {
        code: "CONFIG_INVALID",
        message: "the certificate, its key and the CA cannot be used together",
        hint: "restore all three from one source",
      },
      { cause: error },
    );
  }
  const leaf = new X509Certificate(cert);
  const { validToDate } = leaf;
  if (validToDate.getTime() > now) return false;
  if (isInGrace(validToDate, now) && identityOf(leaf, "client").role === "node") return true;
  throw new KcoreError({
    code: "API_UNTRUSTED",
    message: `our own certificate expired on ${validToDate.toISOString()}`,
    hint: "on the bastion, kcore rotate certs renews the operator's; a node's renews itself for 30 days, then: kcore orchestrate deploy_node NODE",
  });
}

/** The error of a call that got no answer: API_UNTRUSTED or API_UNREACHABLE. */
export function connectionProblem(endpoint: ApiEndpoint, error: unknown): KcoreError {
  const { code = "", message } = error as NodeJS.ErrnoException;
  const isTrustFailure =
    code.startsWith("ERR_TLS") ||
    code.startsWith("ERR_SSL") ||
    /CERT|SIGNATURE|ISSUER|CA$|PURPOSE|UNSPECIFIED/.test(code);
  const where = formatEndpoint(endpoint);
  return isTrustFailure
    ? new KcoreError(
        {
          code: "API_UNTRUSTED",
          message: `controller ${where} and we do not trust each other: ${message}`,
          hint:
            code === "CERT_HAS_EXPIRED"
              ? "a controller renews its certificate when it starts: systemctl restart kcore-controller there; its log says why it did not"
              : "compare both certificates with the cluster's ca.crt: openssl verify -CAfile ca.crt FILE; and both clocks",
        },
        { cause: error, exitCode: exitCodes.unreachable },
      )
    : new KcoreError(
        {
          code: "API_UNREACHABLE",
          message: `controller ${where} cannot be reached: ${message}`,
          hint: "is it running (systemctl status kcore-controller), and is the port open from here?",
        },
        { cause: error, exitCode: exitCodes.unreachable },
      );
}
