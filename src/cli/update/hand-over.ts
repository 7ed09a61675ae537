import type { BodyOf, ReplyOf } from "#api/methods.ts";
import type { UpdateSummary } from "#api/update-schemas.ts";
import { KcoreError } from "#errors/problem.ts";
import { defined } from "#optional/defined.ts";
import type { SignedStatement } from "#rollout/spec.ts";
import type { Cluster } from "../cluster/open-cluster.ts";
import { askUpdates, getUpdate } from "./ask-updates.ts";
import { bringBundle } from "./bring-bundle.ts";
import { requireViable, type PreparedUpdate } from "./prepare-update.ts";

/** What came of it, and how the update stands: one that is unchanged may be over. */
export type AppliedUpdate = ReplyOf<"applyUpdate"> & Pick<UpdateSummary, "name" | "phase">;

/**
 * Has an update and its owner signed and hands both over, with its bundle; one that stands already needs none of it. Gives the signed manifest.
 * @throws KcoreError UPDATE_BLOCKED, as `sign` does, and what controllers refuse
 */
export async function signAndHandOver(
  cluster: Pick<Cluster, "ask" | "endpoints" | "current">,
  prepared: PreparedUpdate,
  { again, sign }: { readonly again?: boolean; readonly sign: () => Promise<Omit<BodyOf<"applyUpdate">, "again">> },
): Promise<{ readonly applied: AppliedUpdate; readonly signed?: SignedStatement }> {
  const { plan, present, draft } = prepared;
  if (plan.result === "unchanged" && present) {
    const { name, generation, hash, approvalStatus, phase } = present;
    return { applied: { name, result: plan.result, generation, hash, approvalStatus, phase } };
  }
  requireViable(plan);
  const asked = { ...(await sign()), ...defined({ again }) };
  const applied = await handOver(cluster, prepared, asked, present?.owner.endpoint ?? cluster.current());
  return { applied: { name: draft.name, ...applied, phase: "pending" }, signed: asked.signed };
}

/** To the update's owner, which a controller that refuses it names; of a new one, to the controller that the bastion signs as its owner. */
async function handOver(
  cluster: Pick<Cluster, "ask" | "endpoints">,
  prepared: Pick<PreparedUpdate, "draft" | "bundle" | "present">,
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
