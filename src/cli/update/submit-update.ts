import { join } from "node:path";
import type { BodyOf, ReplyOf } from "#api/methods.ts";
import type { UpdateDraft, UpdatePlan, UpdateSummary, UpdateView } from "#api/update-schemas.ts";
import { replaceFile } from "#base/file.ts";
import type { RunTasks } from "#base/tasks.ts";
import { exitCodes, KcoreError, type Problem } from "#errors/problem.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { renewOperatorIfNeeded } from "#pki/cluster.ts";
import { openIssuer } from "#pki/rotate-bastion.ts";
import { signStatement } from "#pki/statement.ts";
import type { SignedStatement, OwnershipStatement, UpdateStatement } from "#rollout/spec.ts";
import { withCaPassphrase } from "../cluster/ca-passphrase.ts";
import { checkClock, type Cluster } from "../cluster/open-cluster.ts";
import { askUpdates, findUpdate, getUpdate, type UpdateManifest } from "./ask-updates.ts";
import { bringBundle } from "./bring-bundle.ts";
import { type FoundBundle, bundleFor } from "./bundles.ts";
import { updateFolder } from "./updates-folder.ts";

/** A manifest ready to be applied, with its bundle and a controller's plan. */
export interface PreparedUpdate {
  readonly draft: UpdateDraft;
  /** Absent for NixOS systems, which nodes build themselves. */
  readonly bundle: FoundBundle | undefined;
  /** Runs the transfer of the bundle. */
  readonly tasks: RunTasks;
  readonly plan: UpdatePlan;
  /** The present update of this name. */
  readonly present: UpdateView | undefined;
}

/**
 * Finds the bundle, and asks a controller for the update's plan; the cluster stays unchanged. @throws KcoreError as
 * bundleFor and askUpdates
 */
export async function prepareUpdate(
  cluster: Pick<Cluster, "ask">,
  { name, spec }: UpdateManifest,
  { bundle: file, again, tasks }: { readonly bundle?: string; readonly again?: boolean; readonly tasks: RunTasks },
): Promise<PreparedUpdate> {
  const bundle = await bundleFor({ name, spec }, file, tasks);
  const draft = { name, spec, ...omitUndefined({ bundle: bundle?.bundle }) };
  return { draft, bundle, tasks, ...(await requestPlan(cluster, draft, again)) };
}

/** A controller's plan for a manifest, and the present update of that name. @throws KcoreError as askUpdates */
export async function requestPlan(
  cluster: Pick<Cluster, "ask">,
  draft: UpdateDraft,
  again: boolean | undefined,
): Promise<Pick<PreparedUpdate, "plan" | "present">> {
  const present = await findUpdate(cluster, draft.name);
  const plan = await askUpdates(cluster, (client) =>
    client.call("planUpdate", { ...draft, ...omitUndefined({ again }) }),
  );
  return { plan, present };
}

/** The reasons why a plan cannot be carried out, one line each. */
export function blockerTexts({ blockers, nodes }: UpdatePlan): readonly string[] {
  return [...blockers, ...nodes.flatMap((node) => node.blockers.map((text) => `${node.hostname}: ${text}`))];
}

/** The blockers of a plan as problems. */
export function blockerProblems(plan: UpdatePlan): readonly Problem[] {
  return blockerTexts(plan).map((text) => ({ code: "UPDATE_BLOCKED", message: `“${plan.name}”: ${text}` }));
}

/** Refuses a plan with blockers. @throws KcoreError UPDATE_BLOCKED */
export function requireViable(plan: UpdatePlan): void {
  const problems = blockerProblems(plan);
  if (problems.length > 0) throw new KcoreError(problems, { exitCode: exitCodes.failed });
}

/** A plan for the present update, as if it began now. @throws KcoreError UPDATE_UNKNOWN */
export async function planOfPresent(cluster: Pick<Cluster, "ask">, name: string, again?: boolean): Promise<UpdatePlan> {
  const { spec, bundle } = await getUpdate(cluster, name);
  return askUpdates(cluster, (client) =>
    client.call("planUpdate", { name, spec, ...omitUndefined({ bundle, again }) }),
  );
}

/**
 * Signs an update and its owner with the bastion's CA, hands both over, and keeps the signed manifest on this machine.
 * @throws KcoreError UPDATE_BLOCKED, CLOCK_DIFFERS, QUESTION_UNANSWERED, PKI_PASSPHRASE_WRONG, INTERRUPTED during the transfer of
 * the bundle, and the refusals of controllers
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
    ...omitUndefined({ again }),
  });
  if (!signed) return applied;
  // The file proves later which manifest was signed here, and its folder gives completion the update's name.
  const file = join(await updateFolder(cluster.folder, applied.name), `generation-${applied.generation}.json`);
  await replaceFile(file, `${JSON.stringify(signed)}\n`);
  return applied;
}

/** The result of an apply, with the update's phase, since an unchanged update may be over. */
export type AppliedUpdate = ReplyOf<"applyUpdate"> & Pick<UpdateSummary, "name" | "phase">;

/**
 * Has an update and its owner signed, and hands both over with the bundle. An unchanged update is neither signed nor handed
 * over, so `signed` is absent then.
 * @throws KcoreError UPDATE_BLOCKED, as `sign` does, and the refusals of controllers
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
  const request = { ...(await sign()), ...omitUndefined({ again }) };
  const applied = await handOver(cluster, prepared, request, present?.owner.endpoint ?? cluster.current());
  return { applied: { name: draft.name, ...applied, phase: "pending" }, signed: request.signed };
}

/**
 * Hands the update over to `owner`, the present or signed one. After a refusal UPDATE_OWNED it tries the owner that the
 * controllers report, once.
 */
async function handOver(
  cluster: Pick<Cluster, "ask" | "endpoints">,
  prepared: Pick<PreparedUpdate, "draft" | "bundle" | "present" | "tasks">,
  request: BodyOf<"applyUpdate">,
  owner: string | undefined,
  isLast = false,
): Promise<ReplyOf<"applyUpdate">> {
  const { draft, bundle, present, tasks } = prepared;
  const { name } = draft;
  const endpoints = owner === undefined ? cluster.endpoints.slice(0, 1) : [owner];
  let refusal: KcoreError;
  try {
    return await askUpdates(
      cluster,
      async (client) => {
        if (bundle) await bringBundle(client, bundle, endpoints[0] ?? "", tasks);
        return client.call("applyUpdate", request, { id: name });
      },
      { endpoints },
    );
  } catch (error) {
    if (!(error instanceof KcoreError)) throw error;
    refusal = error;
  }
  const [problem] = refusal.problems;
  if (problem?.code === "UPDATE_OWNED" && !isLast) {
    const { endpoint } = (await getUpdate(cluster, name)).owner;
    if (endpoint !== undefined) return handOver(cluster, prepared, request, endpoint, true);
  }
  if (problem?.code !== "API_UNREACHABLE" || !present) throw refusal;
  const hint = `only this controller, the owner of “${name}”, takes changes; if it is gone: kcore update cluster takeover ${name}`;
  throw new KcoreError({ ...problem, hint }, { cause: refusal, exitCode: refusal.exitCode });
}

/**
 * Opens the bastion's CA to sign updates and their owners; renews the operator's certificate by the way.
 * @throws KcoreError CLOCK_DIFFERS, QUESTION_UNANSWERED, PKI_PASSPHRASE_WRONG
 */
export async function openSigner(cluster: Cluster, passphraseFile: string | undefined) {
  const { folder } = cluster;
  await checkClock(cluster);
  const authority = await withCaPassphrase(passphraseFile, (passphrase) => openIssuer(folder, passphrase));
  await renewOperatorIfNeeded(folder, authority, Date.now());
  const sign = (statement: UpdateStatement | OwnershipStatement): SignedStatement =>
    signStatement(JSON.stringify(statement), authority);
  const common = { cluster: authority.cluster, signedAt: new Date().toISOString() };
  return {
    update: (draft: UpdateDraft) => sign({ kind: "ClusterUpdate", ...draft, ...common }),
    owner: (name: string, { id, epoch }: { readonly id: string; readonly epoch: number }) =>
      sign({ kind: "ClusterUpdateOwner", name, owner: id, epoch, ...common }),
  };
}
