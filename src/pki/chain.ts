import { X509Certificate } from "node:crypto";

/** All certificates of a PEM text, in its order. Throws what node:crypto throws when one cannot be read. */
export function certificatesOf(pem: string): readonly X509Certificate[] {
  const texts = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  return texts.map((text) => new X509Certificate(text));
}

/** The first certificate of a PEM text: of a chain, the leaf. Throws what node:crypto throws when there is none. */
export function firstCertificate(pem: string): X509Certificate {
  return new X509Certificate(pem);
}
