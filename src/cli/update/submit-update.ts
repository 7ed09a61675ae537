import { join } from "node:path";
import { defined } from "#optional/defined.ts";
import { renewOperatorIfNeeded } from "#pki/cluster.ts";
import { replaceFile } from "#base/file.ts";
import { openIssuer } from "#pki/rotate-bastion.ts";
import { signStatement } from "#pki/statement.ts";
import type { SignedStatement, Statement } from "#rollout/spec.ts";
import { withCaPassphrase } from "../cluster/ca-passphrase.ts";
import { checkClock } from "../cluster/check-clock.ts";
import type { Cluster } from "../cluster/open-cluster.ts";
import { signAndHandOver, type AppliedUpdate } from "./hand-over.ts";
import type { PreparedUpdate } from "./prepare-update.ts";
import { updateFolder } from "./updates-folder.ts";

/**
 * Signs an update with the bastion's CA, hands it over and keeps what was signed.
 * @throws KcoreError UPDATE_BLOCKED, QUESTION_UNANSWERED, PKI_PASSPHRASE_WRONG, INTERRUPTED, and what controllers refuse
 */
export async function submitUpdate(
  cluster: Cluster,
  prepared: PreparedUpdate,
  { passphraseFile, again }: { readonly passphraseFile?: string; readonly again?: boolean },
): Promise<AppliedUpdate> {
  const { applied, signed } = await signAndHandOver(cluster, prepared, {
    sign: () => sign(cluster, prepared, passphraseFile),
    ...defined({ again }),
  });
  if (!signed) return applied;
  // Kept for whoever asks later what was signed here; and it lets names complete.
  const file = join(await updateFolder(cluster.folder, applied.name), `generation-${applied.generation}.json`);
  await replaceFile(file, `${JSON.stringify(signed)}\n`);
  return applied;
}

async function sign(
  cluster: Cluster,
  { draft }: PreparedUpdate,
  passphraseFile: string | undefined,
): Promise<SignedStatement> {
  const { folder } = cluster;
  await checkClock(cluster);
  const authority = await withCaPassphrase(passphraseFile, (passphrase) => openIssuer(folder, passphrase));
  await renewOperatorIfNeeded(folder, authority, Date.now());
  const statement: Statement = {
    kind: "ClusterUpdate",
    cluster: authority.cluster,
    ...draft,
    signedAt: new Date().toISOString(),
  };
  return signStatement(JSON.stringify(statement), authority);
}
