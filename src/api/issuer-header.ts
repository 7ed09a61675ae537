import { encodeIssuer } from "#pki/chain.ts";

/**
 * The header with the CA that issued a client's certificate. A handshake has it as well, but Node's servers do not expose it.
 * After a rotation of the bastion's sub-CA, controllers must see the new CA to accept an operator or a peer (ADR 0517).
 */
export const issuerHeader = "x-kcore-issuer";

/** The header of a client with this chain (PEM, leaf first); none for a chain without the issuer. */
export function issuerHeaders(chain: string): Readonly<Record<string, string>> {
  const issuer = encodeIssuer(chain);
  return issuer === undefined ? {} : { [issuerHeader]: issuer };
}
