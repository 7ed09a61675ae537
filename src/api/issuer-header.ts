import { encodeIssuer } from "#pki/chain.ts";

/**
 * Shows the CA that issued a client's certificate. A client shows it in the handshake as well, but Node's servers do not hand it out;
 * controllers need it of operators and of each other when the bastion got a new sub-CA (ADR 0517).
 */
export const issuerHeader = "x-kcore-issuer";

/** The header for a client with this chain. */
export function issuerHeaders(chain: string): Readonly<Record<string, string>> {
  const issuer = encodeIssuer(chain);
  return issuer === undefined ? {} : { [issuerHeader]: issuer };
}
