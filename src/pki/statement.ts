import { sign, verify, type X509Certificate } from "node:crypto";
import { KcoreError } from "#errors/problem.ts";
import { firstCertificate, isOfBastion, readableCertificates } from "./chain.ts";
import type { Authority } from "./issue.ts";

/** A text with the bastion's signature, as controllers and nodes receive it. */
export interface SignedText {
  /** The signed text, byte for byte: JSON. */
  readonly statement: string;
  /** ECDSA P-256 over SHA-256 of {@link signedPrefix} and the text in UTF-8; DER, in base64. */
  readonly signature: string;
  /** The sub-CA of the bastion that signed it, in PEM. */
  readonly signer: string;
}

/** Put before each statement for its signature, so that a signature of the same key for another purpose never fits a statement. */
export const signedPrefix = "kcore cluster update\n";

/** Signs a statement with the bastion's sub-CA, as openAuthority gives it. */
export function signStatement(
  statement: string,
  { certificatePem, key }: Pick<Authority, "certificatePem" | "key">,
): SignedText {
  return {
    statement,
    signature: sign("sha256", signedBytes(statement), key).toString("base64"),
    signer: certificatePem,
  };
}

/**
 * The contents of a statement that this cluster's bastion signed. The signer must be a sub-CA of the bastion that is valid now: neither a
 * controller's nor the root. The statement must name this cluster.
 * @throws KcoreError UPDATE_UNSIGNED
 */
export function verifyStatement(
  { statement, signature, signer }: SignedText,
  { rootPem, cluster, now = Date.now() }: { readonly rootPem: string; readonly cluster: string; readonly now?: number },
): unknown {
  const ca = bastionCaOf(signer, rootPem);
  if (now < ca.validFromDate.getTime() || now > ca.validToDate.getTime())
    throw notSigned(
      `the CA that signed it is valid from ${ca.validFromDate.toISOString()} to ${ca.validToDate.toISOString()}; here it is ${new Date(now).toISOString()}`,
      "set the clock right; if it is right: on the bastion, kcore rotate sub-ca, and apply the update again",
    );
  if (!verify("sha256", signedBytes(statement), ca.publicKey, Buffer.from(signature, "base64")))
    throw notSigned("the signature is not one of this text");
  const contents = parseStatement(statement);
  if (contents.cluster === cluster) return contents;
  throw notSigned(`it is for the cluster ${JSON.stringify(contents.cluster)}, not for “${cluster}”`);
}

function bastionCaOf(signer: string, rootPem: string): X509Certificate {
  const found = readableCertificates(signer);
  const [ca] = found;
  if (ca === undefined || found.length > 1)
    throw notSigned("it does not come with exactly one certificate of its signer");
  if (ca.raw.equals(firstCertificate(rootPem).raw)) throw notSigned("the root signed it, not the bastion's sub-CA");
  if (!isOfBastion(ca, rootPem)) throw notSigned("its signer is not the bastion's CA");
  return ca;
}

function parseStatement(statement: string): { readonly cluster?: unknown } {
  try {
    const contents: unknown = JSON.parse(statement);
    if (typeof contents === "object" && contents !== null) return contents;
  } catch {
    // Refused below.
  }
  throw notSigned("it is no JSON object");
}

function signedBytes(statement: string): Buffer {
  return Buffer.from(signedPrefix + statement, "utf8");
}

function notSigned(
  reason: string,
  hint = "sign and apply it on the bastion of this cluster: kcore update cluster apply",
): KcoreError {
  return new KcoreError({ code: "UPDATE_UNSIGNED", message: `the update is not the bastion's word: ${reason}`, hint });
}
