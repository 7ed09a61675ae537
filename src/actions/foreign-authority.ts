// Certificates of a CA of another program, such as Kubernetes: no part of the cluster's own CA.
import { z } from "zod";
import type { ActionContext } from "#engine/orchestrate/action.ts";
import { firstCertificate } from "#pki/chain.ts";
import { issueForeign, openForeignCa, type ForeignLeaf } from "#pki/foreign-ca.ts";
import type { KeyProof } from "#pki/issue.ts";
import { onceARun } from "./once-a-run.ts";

/** A certificate in PEM, and its last day as `2026-11-25`. */
export interface IssuedCertificate {
  readonly certificate: string;
  readonly until: string;
}

/** Issues a certificate by a CA that pki.createAuthority made; asks for the CA's passphrase once a run. @throws KcoreError as `openForeignCa` and `issueForeign` */
export async function issueByForeignCa(
  authority: string,
  leaf: ForeignLeaf,
  proof: KeyProof,
  context: ActionContext,
): Promise<IssuedCertificate> {
  const ca = await onceARun(`${context.home} ${authority}`, context, async () =>
    openForeignCa(context.home, authority, await context.passphrase()),
  );
  const certificate = issueForeign(leaf, { ca, proof, now: Date.now() });
  return { certificate, until: firstCertificate(certificate).validToDate.toISOString().slice(0, 10) };
}

/** The name of another program's CA, and of its file. */
export const AuthorityName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9-]{0,62}$/, "must be letters, digits and hyphens, such as kubernetes");

/** A common name or an organization. */
export const CertificateName = z.string().regex(/^[\x20-\x7e]{1,64}$/, "must be 1 to 64 characters of ASCII");
