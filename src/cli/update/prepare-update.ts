import type { UpdateDraft, UpdatePlan, UpdateView } from "#api/update-schemas.ts";
import { exitCodes, KcoreError, type Problem } from "#errors/problem.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import type { Cluster } from "../cluster/open-cluster.ts";
import { askUpdates, findUpdate, getUpdate, type UpdateManifest } from "./ask-updates.ts";
import { type FoundBundle, bundleFor } from "./bundles.ts";

/** A manifest as it would be applied now: with its bundle, and with the controllers' plan for it. */
export interface PreparedUpdate {
  readonly draft: UpdateDraft;
  /** Absent for NixOS systems, which nodes build themselves. */
  readonly bundle: FoundBundle | undefined;
  readonly plan: UpdatePlan;
  /** The present update of this name. */
  readonly present: UpdateView | undefined;
}

/** Finds the bundle, and asks for the plan of the update; nothing is changed. @throws KcoreError as findBundle, and Controllers.ask */
export async function prepareUpdate(
  cluster: Pick<Cluster, "ask">,
  { name, spec }: UpdateManifest,
  { bundle: file, again }: { readonly bundle?: string; readonly again?: boolean },
): Promise<PreparedUpdate> {
  const bundle = await bundleFor({ name, spec }, file);
  const draft = { name, spec, ...omitUndefined({ bundle: bundle?.bundle }) };
  return { draft, bundle, ...(await planUpdate(cluster, draft, again)) };
}

/** The controllers' plan for a manifest. @throws KcoreError as askUpdates does */
export async function planUpdate(
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
export function blockersOf({ blockers, nodes }: UpdatePlan): readonly string[] {
  return [...blockers, ...nodes.flatMap((node) => node.blockers.map((text) => `${node.hostname}: ${text}`))];
}

/** The same as problems. */
export function problemsOf(plan: UpdatePlan): readonly Problem[] {
  return blockersOf(plan).map((text) => ({ code: "UPDATE_BLOCKED", message: `“${plan.name}”: ${text}` }));
}

/** @throws KcoreError UPDATE_BLOCKED */
export function requireViable(plan: UpdatePlan): void {
  const problems = problemsOf(plan);
  if (problems.length > 0) throw new KcoreError(problems, { exitCode: exitCodes.failed });
}

/** A plan for the present update, as if it began now. @throws KcoreError UPDATE_UNKNOWN */
export async function planOfPresent(cluster: Pick<Cluster, "ask">, name: string, again?: boolean): Promise<UpdatePlan> {
  const { spec, bundle } = await getUpdate(cluster, name);
  return askUpdates(cluster, (client) =>
    client.call("planUpdate", { name, spec, ...omitUndefined({ bundle, again }) }),
  );
}
