import { X509Certificate } from "node:crypto";
import { certificatesOf, firstCertificate, isIssuedBy, isOfBastion, refusalOfIssuer } from "./chain.ts";

/**
 * The CAs of the bastion: the root, and the bastion's own sub-CAs that were seen. A certificate of theirs is the bastion's word and no
 * controller's (ADR 0517). TLS alone cannot tell: it takes any sub-CA, and Node's servers do not hand out the chain that a client showed.
 */
export interface BastionCas {
  /** Remembers a CA if it is one of the bastion's, by the root's signature; any peer may have brought it. */
  readonly learn: (ca: X509Certificate | undefined) => void;
  /** Whether the root itself issued it, which it does for an operator's new key alone: its highest word. */
  readonly isOfRoot: (leaf: X509Certificate) => boolean;
  /** Why a leaf is not the bastion's word; undefined: it is. `shown`: the CA that its holder says has issued it. */
  readonly refusalOf: (leaf: X509Certificate, shown?: X509Certificate) => string | undefined;
}

/** `chain`: a PEM text of a leaf and the CA that issued it, which is learned. */
export function knowBastionCas(rootPem: string, chain: string): BastionCas {
  // No limit is needed: only who holds the root's key can make one.
  const known = new Map<string, X509Certificate>();
  const learn: BastionCas["learn"] = (ca) => {
    if (ca && isOfBastion(ca, rootPem)) known.set(ca.fingerprint256, ca);
  };
  const root = firstCertificate(rootPem);
  learn(root);
  learn(certificatesOf(chain)[1]);
  return {
    learn,
    isOfRoot: (leaf) => isIssuedBy(leaf, root),
    refusalOf(leaf, shown) {
      learn(shown);
      for (const ca of known.values()) if (isIssuedBy(leaf, ca)) return undefined;
      return refusalOfIssuer(leaf, { issuer: shown, rootPem });
    },
  };
}

/** How a client shows the CA that issued its certificate: its DER in base64; undefined for a chain without one. */
export function encodeIssuer(chain: string): string | undefined {
  return certificatesOf(chain)[1]?.raw.toString("base64");
}

/** @see encodeIssuer; undefined for a text of another form. */
export function decodeIssuer(text: string | undefined): X509Certificate | undefined {
  if (text === undefined) return undefined;
  try {
    return new X509Certificate(Buffer.from(text, "base64"));
  } catch {
    return undefined;
  }
}
