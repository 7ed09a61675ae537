import { join } from "node:path";
import type { BodyOf, ReplyOf } from "#api/methods.ts";
import type { UpdateSummary } from "#api/update-schemas.ts";
import { KcoreError } from "#errors/problem.ts";
import { defined } from "#optional/defined.ts";
import { openAuthority } from "#pki/cluster.ts";
import { replaceFile } from "#pki/private-files.ts";
import { signStatement } from "#pki/statement.ts";
import type { SignedStatement, Statement } from "#rollout/spec.ts";
import { caPassphrase } from "../cluster/ca-passphrase.ts";
import type { Cluster } from "../cluster/open-cluster.ts";
import { askUpdates, getUpdate } from "./ask-updates.ts";
import { bringBundle } from "./bring-bundle.ts";
import { requireViable, type PreparedUpdate } from "./prepare-update.ts";
import { updateFolder } from "./updates-folder.ts";

/** What came of it, and how the update stands: one that is unchanged may be over. */
export type AppliedUpdate = ReplyOf<"applyUpdate"> & Pick<UpdateSummary, "name" | "phase">;

/**
 * Makes it so: signs the update by the bastion's CA, brings the bundle to its owner and hands the update over. One that stands already
 * needs none of it. @throws KcoreError UPDATE_BLOCKED, QUESTION_UNANSWERED, PKI_PASSPHRASE_WRONG, INTERRUPTED, and what controllers refuse
 */
export async function submitUpdate(
  cluster: Cluster,
  prepared: PreparedUpdate,
  { passphraseFile, again }: { readonly passphraseFile?: string; readonly again?: boolean },
): Promise<AppliedUpdate> {
  const { plan, present, draft } = prepared;
  if (plan.result === "unchanged" && present) {
    const { name, generation, hash, approvalStatus, phase } = present;
    return { name, result: plan.result, generation, hash, approvalStatus, phase };
  }
  requireViable(plan);
  const signed = await sign(cluster, prepared, passphraseFile);
  const asked = { signed, ...defined({ again }) };
  const applied = await handOver(cluster, prepared, asked, present?.owner.endpoint ?? cluster.current());
  // Kept for whoever asks later what was signed here; and it lets names complete.
  const file = join(await updateFolder(cluster.folder, draft.name), `generation-${applied.generation}.json`);
  await replaceFile(file, `${JSON.stringify(signed)}\n`);
  return { name: draft.name, ...applied, phase: "pending" };
}

async function sign(
  { folder }: Cluster,
  { draft }: PreparedUpdate,
  passphraseFile: string | undefined,
): Promise<SignedStatement> {
  const authority = await openAuthority(folder, await caPassphrase(passphraseFile));
  const statement: Statement = {
    kind: "ClusterUpdate",
    cluster: authority.cluster,
    ...draft,
    signedAt: new Date().toISOString(),
  };
  return signStatement(JSON.stringify(statement), authority);
}

/**
 * To one controller only: a second one that is asked because the first was slow would own it as well. It is the update's owner, which
 * whoever refuses it names.
 */
async function handOver(
  cluster: Cluster,
  prepared: PreparedUpdate,
  asked: BodyOf<"applyUpdate">,
  owner: string | undefined,
  isLast = false,
): Promise<ReplyOf<"applyUpdate">> {
  const { draft, bundle, present } = prepared;
  const { name } = draft;
  const endpoints = owner === undefined ? cluster.endpoints.slice(0, 1) : [owner];
  let refused: KcoreError;
  try {
    return await askUpdates(
      cluster,
      async (client) => {
        if (bundle) await bringBundle(client, bundle, endpoints[0] ?? "");
        return client.call("applyUpdate", asked, { id: name });
      },
      { endpoints },
    );
  } catch (error) {
    if (!(error instanceof KcoreError)) throw error;
    refused = error;
  }
  const [problem] = refused.problems;
  if (problem?.code === "UPDATE_OWNED" && !isLast) {
    const { endpoint } = (await getUpdate(cluster, name)).owner;
    if (endpoint !== undefined) return handOver(cluster, prepared, asked, endpoint, true);
  }
  if (problem?.code !== "API_UNREACHABLE" || !present) throw refused;
  const hint = `it owns “${name}”, and takes what changes of it; if it is gone: kcore update cluster takeover ${name}`;
  throw new KcoreError({ ...problem, hint }, { cause: refused, exitCode: refused.exitCode });
}
