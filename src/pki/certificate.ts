import { createHash, createPublicKey, randomBytes, sign, type KeyObject, type X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import forge from "node-forge";
import { bitString, encodeDer, objectId, octetString, parseDer, sequence, toPem, type Asn1 } from "./der.ts";
import { publicDer } from "./keys.ts";

/** The contents of a certificate, all decided by its issuer (S-14). */
export interface CertificatePlan {
  readonly commonName: string;
  /** Stand before the common name in the subject, each as an attribute of its own. */
  readonly organizations?: readonly string[];
  readonly publicKey: KeyObject;
  /** Absent: the certificate signs itself; `signer` is its own key. */
  readonly issuer?: X509Certificate;
  readonly signer: KeyObject;
  readonly notBefore: Date;
  readonly notAfter: Date;
  /** The number of CAs that this CA allows below it. Absent: the certificate is a leaf. */
  readonly pathLength?: number;
  readonly usages?: readonly ("server" | "client")[];
  /** Host names and IP addresses. */
  readonly hosts?: readonly string[];
  readonly uri?: string;
  /** For a CA: the only host that URIs below it may name, `lab` for `kcore://lab/…` (RFC 5280, 4.2.1.10). */
  readonly permittedUriHost?: string;
}

const { asn1, pki } = forge;
const ecdsaWithSha256 = "1.2.840.10045.4.3.2";
/** Places in a TBSCertificate with an explicit version (RFC 5280, section 4.1). */
const field = { signature: 2, issuer: 3, subject: 5, publicKey: 6 } as const;

/**
 * Issues an X.509 v3 certificate with an ECDSA P-256 signature, in PEM.
 * forge builds the part to be signed, node:crypto signs it: forge knows no elliptic curves.
 */
export function issueCertificate(plan: CertificatePlan): string {
  const tbs = toBeSigned(plan);
  const signature = sign("sha256", encodeDer(tbs), plan.signer);
  return toPem("CERTIFICATE", encodeDer(sequence([tbs, algorithm(), bitString(signature)])));
}

function toBeSigned(plan: CertificatePlan): Asn1 {
  const draft = pki.createCertificate();
  // forge insists on an RSA key; the real key overwrites it below.
  draft.publicKey = pki.setRsaPublicKey(new forge.jsbn.BigInteger("3"), new forge.jsbn.BigInteger("3"));
  draft.serialNumber = newSerial();
  const placeholder = pki.oids["sha256WithRSAEncryption"] ?? "";
  draft.siginfo.algorithmOid = placeholder;
  draft.signatureOid = placeholder;
  draft.signature = "";
  draft.validity.notBefore = plan.notBefore;
  draft.validity.notAfter = plan.notAfter;
  // forge's default string type is PrintableString, even for names it cannot hold.
  const utf8 = { valueTagClass: asn1.Type.UTF8 as never };
  const name = [
    ...(plan.organizations ?? []).map((value) => ({ name: "organizationName", value, ...utf8 })),
    { name: "commonName", value: plan.commonName, ...utf8 },
  ];
  draft.setSubject(name);
  draft.setIssuer(name);
  draft.setExtensions(extensionsOf(plan));
  const tbs = pki.certificateToAsn1(draft).value[0] as Asn1;
  const fields = tbs.value as Asn1[];
  fields[field.signature] = algorithm();
  fields[field.publicKey] = parseDer(publicDer(plan.publicKey));
  // The issuer's name byte for byte, so that chains match with every string type.
  if (plan.issuer) fields[field.issuer] = fieldOf(plan.issuer, field.subject);
  return tbs;
}

function extensionsOf(plan: CertificatePlan): object[] {
  const isCa = plan.pathLength !== undefined;
  const issuerKey = plan.issuer ? plan.issuer.publicKey : createPublicKey(plan.signer);
  const alternatives = [
    ...(plan.hosts ?? []).map((host) => (isIP(host) ? { type: 7, ip: host } : { type: 2, value: host })),
    ...(plan.uri === undefined ? [] : [{ type: 6, value: plan.uri }]),
  ];
  const usages = {
    ...(plan.usages?.includes("server") ? { serverAuth: true } : {}),
    ...(plan.usages?.includes("client") ? { clientAuth: true } : {}),
  };
  return [
    { name: "basicConstraints", critical: true, cA: isCa, ...(isCa ? { pathLenConstraint: plan.pathLength } : {}) },
    { name: "keyUsage", critical: true, ...(isCa ? { keyCertSign: true, cRLSign: true } : { digitalSignature: true }) },
    ...(isCa ? [] : [{ name: "extKeyUsage", ...usages }]),
    ...(alternatives.length === 0 ? [] : [{ name: "subjectAltName", altNames: alternatives }]),
    ...(plan.permittedUriHost === undefined ? [] : [nameConstraints(plan.permittedUriHost)]),
    { name: "subjectKeyIdentifier", value: octetString(keyIdentifier(plan.publicKey)) },
    {
      name: "authorityKeyIdentifier",
      value: sequence([
        asn1.create(asn1.Class.CONTEXT_SPECIFIC, 0, false, keyIdentifier(issuerKey).toString("binary")),
      ]),
    },
  ];
}

function nameConstraints(uriHost: string): object {
  const base = asn1.create(asn1.Class.CONTEXT_SPECIFIC, 6, false, uriHost);
  const permitted = asn1.create(asn1.Class.CONTEXT_SPECIFIC, 0, true, [sequence([base])]);
  const value = encodeDer(sequence([permitted])).toString("binary");
  return { id: "2.5.29.30", name: "nameConstraints", critical: true, value };
}

/** RFC 5280, 4.2.1.2 (1): SHA-1 over the key bits, without the leading count of unused bits. */
function keyIdentifier(key: KeyObject): Buffer {
  const bits = (parseDer(publicDer(key)).value[1] as Asn1).value as string;
  return createHash("sha1")
    .update(Buffer.from(bits.slice(1), "binary"))
    .digest();
}

/** A random serial number of 16 bytes in hex: positive (first bit clear), without a leading zero byte. */
function newSerial(): string {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x01;
  return bytes.toString("hex");
}

function fieldOf(certificate: X509Certificate, index: number): Asn1 {
  const tbs = parseDer(certificate.raw).value[0] as Asn1;
  return tbs.value[index] as Asn1;
}

function algorithm(): Asn1 {
  return sequence([objectId(ecdsaWithSha256)]);
}
