import { renewOperatorIfNeeded } from "#pki/cluster.ts";
import { openIssuer } from "#pki/rotate-bastion.ts";
import { signStatement } from "#pki/statement.ts";
import type { Ownership, SignedStatement, Statement } from "#rollout/spec.ts";
import { withCaPassphrase } from "../cluster/ca-passphrase.ts";
import { checkClock } from "../cluster/check-clock.ts";
import type { Cluster } from "../cluster/open-cluster.ts";

/** What the bastion signs about updates. */
export interface Signer {
  readonly update: (draft: Pick<Statement, "name" | "spec" | "bundle">) => SignedStatement;
  readonly owner: (name: string, owner: { readonly id: string; readonly epoch: number }) => SignedStatement;
}

/** Opens the keys of the bastion's CA. @throws KcoreError QUESTION_UNANSWERED, PKI_PASSPHRASE_WRONG, INTERRUPTED */
export async function openSigner(cluster: Cluster, passphraseFile: string | undefined): Promise<Signer> {
  const { folder } = cluster;
  await checkClock(cluster);
  const authority = await withCaPassphrase(passphraseFile, (passphrase) => openIssuer(folder, passphrase));
  await renewOperatorIfNeeded(folder, authority, Date.now());
  const sign = (said: Statement | Ownership): SignedStatement => signStatement(JSON.stringify(said), authority);
  const common = { cluster: authority.cluster, signedAt: new Date().toISOString() };
  return {
    update: (draft) => sign({ kind: "ClusterUpdate", ...draft, ...common }),
    owner: (name, { id, epoch }) => sign({ kind: "ClusterUpdateOwner", name, owner: id, epoch, ...common }),
  };
}
