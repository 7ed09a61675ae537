import { firstCertificate } from "#pki/chain.ts";
import { identityOf } from "#pki/identity.ts";
import { readText } from "#base/file.ts";
import { verifyStatement } from "#pki/statement.ts";
import type { SignedStatement } from "#rollout/spec.ts";

export interface StatementFiles {
  /** The cluster's root, and the node's own certificate, which says which cluster that is. */
  readonly caFile: string;
  readonly certFile: string;
}

/**
 * Gives what a statement says once this cluster's bastion has signed it. The files are read each time: certificates are renewed while an
 * update goes on.
 * @throws KcoreError UPDATE_UNSIGNED, FILE_UNREADABLE, PKI_IDENTITY
 */
export async function readStatement(signed: SignedStatement, { caFile, certFile }: StatementFiles): Promise<unknown> {
  const [rootPem, certificate] = await Promise.all([readText(caFile), readText(certFile)]);
  const { cluster } = identityOf(firstCertificate(certificate), "client");
  return verifyStatement(signed, { rootPem, cluster });
}
