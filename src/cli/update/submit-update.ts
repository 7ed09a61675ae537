import { join } from "node:path";
import { defined } from "#optional/defined.ts";
import { replaceFile } from "#base/file.ts";
import type { Cluster } from "../cluster/open-cluster.ts";
import { signAndHandOver, type AppliedUpdate } from "./hand-over.ts";
import { openSigner } from "./open-signer.ts";
import type { PreparedUpdate } from "./prepare-update.ts";
import { updateFolder } from "./updates-folder.ts";

/**
 * Signs an update and its owner with the bastion's CA, hands them over and keeps the manifest that was signed.
 * @throws KcoreError UPDATE_BLOCKED, QUESTION_UNANSWERED, PKI_PASSPHRASE_WRONG, INTERRUPTED, and what controllers refuse
 */
export async function submitUpdate(
  cluster: Cluster,
  prepared: PreparedUpdate,
  { passphraseFile, again }: { readonly passphraseFile?: string; readonly again?: boolean },
): Promise<AppliedUpdate> {
  const { draft, plan } = prepared;
  const { applied, signed } = await signAndHandOver(cluster, prepared, {
    async sign() {
      const signer = await openSigner(cluster, passphraseFile);
      return { signed: signer.update(draft), ownership: signer.owner(draft.name, plan.owner) };
    },
    ...defined({ again }),
  });
  if (!signed) return applied;
  // Kept for whoever asks later what was signed here; and it lets names complete.
  const file = join(await updateFolder(cluster.folder, applied.name), `generation-${applied.generation}.json`);
  await replaceFile(file, `${JSON.stringify(signed)}\n`);
  return applied;
}
