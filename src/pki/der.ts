import forge from "node-forge";

const { asn1 } = forge;
export type Asn1 = forge.asn1.Asn1;

export function sequence(items: Asn1[]): Asn1 {
  return asn1.create(asn1.Class.UNIVERSAL, asn1.Type.SEQUENCE, true, items);
}

/** A primitive of the given universal type; `bytes` is a binary string, as forge holds bytes. */
export function primitive(type: forge.asn1.Type, bytes: string): Asn1 {
  return asn1.create(asn1.Class.UNIVERSAL, type, false, bytes);
}

export function octetString(bytes: Uint8Array): Asn1 {
  return primitive(asn1.Type.OCTETSTRING, Buffer.from(bytes).toString("binary"));
}

/** A BIT STRING of whole bytes. */
export function bitString(bytes: Uint8Array): Asn1 {
  return primitive(asn1.Type.BITSTRING, `\0${Buffer.from(bytes).toString("binary")}`);
}

export function objectId(dotted: string): Asn1 {
  return primitive(asn1.Type.OID, asn1.oidToDer(dotted).getBytes());
}

export function integer(value: number): Asn1 {
  return primitive(asn1.Type.INTEGER, asn1.integerToDer(value).getBytes());
}

/** Parses DER of our own making (never network input); bits that happen to look like DER stay bits. */
export function parseDer(der: Uint8Array): Asn1 {
  const options = { strict: true, decodeBitStrings: false };
  return asn1.fromDer(Buffer.from(der).toString("binary"), options as never);
}

export function encodeDer(tree: Asn1): Buffer {
  return Buffer.from(asn1.toDer(tree).getBytes(), "binary");
}

/** RFC 7468 text: base64 in lines of 64 between BEGIN and END. */
export function toPem(label: string, der: Buffer): string {
  const lines = der.toString("base64").match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join("\n")}\n-----END ${label}-----\n`;
}
