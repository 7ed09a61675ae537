import { sign, verify, type X509Certificate } from "node:crypto";
import { KcoreError } from "#errors/problem.ts";
import { firstCertificate, isOfBastion, readableCertificates } from "./chain.ts";
import type { Authority } from "./issue.ts";

/** A text with the bastion's signature, as it is sent. */
export interface Signed {
  /** The very text that was signed: JSON. */
  readonly statement: string;
  /** ECDSA P-256 over SHA-256 of {@link signedPrefix} and the text in UTF-8; DER, in base64. */
  readonly signature: string;
  /** The bastion's sub-CA that signed, in PEM. */
  readonly signer: string;
}

/** Precedes every text before it is signed, so that a signature of the same key for another purpose never fits a statement. */
export const signedPrefix = "kcore cluster update\n";

/** Signs a statement with the bastion's sub-CA, as openAuthority gives it. */
export function signStatement(
  statement: string,
  { certificatePem, key }: Pick<Authority, "certificatePem" | "key">,
): Signed {
  return { statement, signature: sign("sha256", bytesOf(statement), key).toString("base64"), signer: certificatePem };
}

/**
 * The contents of a statement of this cluster's bastion. Its signer must be a sub-CA of the bastion that is valid now: not a controller's, and
 * not the root, which signs only CAs. The statement must name this cluster.
 * @throws KcoreError UPDATE_UNSIGNED
 */
export function verifyStatement(
  { statement, signature, signer }: Signed,
  { rootPem, cluster, now = Date.now() }: { readonly rootPem: string; readonly cluster: string; readonly now?: number },
): unknown {
  const ca = bastionCaOf(signer, rootPem);
  if (now < ca.validFromDate.getTime() || now > ca.validToDate.getTime())
    throw unsigned(
      `the CA that signed it is valid from ${ca.validFromDate.toISOString()} to ${ca.validToDate.toISOString()}; here it is ${new Date(now).toISOString()}`,
      "set the clock right; if it is right: on the bastion, kcore rotate sub-ca, and apply the update again",
    );
  if (!verify("sha256", bytesOf(statement), ca.publicKey, Buffer.from(signature, "base64")))
    throw unsigned("the signature is not one of this text");
  const said = parse(statement);
  if (said.cluster === cluster) return said;
  throw unsigned(`it is for the cluster ${JSON.stringify(said.cluster)}, not for “${cluster}”`);
}

function bastionCaOf(signer: string, rootPem: string): X509Certificate {
  const found = readableCertificates(signer);
  const [ca] = found;
  if (ca === undefined || found.length > 1)
    throw unsigned("it does not come with exactly one certificate of who signed it");
  if (ca.raw.equals(firstCertificate(rootPem).raw)) throw unsigned("the root signed it, which signs CAs alone");
  if (!isOfBastion(ca, rootPem)) throw unsigned("its signer is not the bastion's CA");
  return ca;
}

function parse(statement: string): { readonly cluster?: unknown } {
  try {
    const said: unknown = JSON.parse(statement);
    if (typeof said === "object" && said !== null) return said;
  } catch {
    // Refused below.
  }
  throw unsigned("it is no JSON object");
}

function bytesOf(statement: string): Buffer {
  return Buffer.from(signedPrefix + statement, "utf8");
}

function unsigned(
  reason: string,
  hint = "sign and apply it on the bastion of this cluster: kcore update cluster apply",
): KcoreError {
  return new KcoreError({ code: "UPDATE_UNSIGNED", message: `the update is not the bastion's word: ${reason}`, hint });
}
