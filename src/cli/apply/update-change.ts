import type { UpdateView } from "#api/update-schemas.ts";
import { exitCodes, KcoreError } from "#errors/problem.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { openCluster } from "../cluster/open-cluster.ts";
import { drawPlanBriefly } from "../update/draw-plan.ts";
import { nextSteps } from "../update/draw-update.ts";
import type { UpdateManifest } from "../update/ask-updates.ts";
import { withProjectDrain } from "../update/project-drain.ts";
import { prepareUpdate, blockerProblems, submitUpdate, type PreparedUpdate } from "../update/submit-update.ts";
import { shownTasks } from "../terminal/shown-tasks.ts";
import { type ApplyFlags, differingFields, type ManifestChange } from "./change.ts";

/** Plans a `ClusterUpdate`: an update as by `kcore update cluster apply`. @throws KcoreError as prepareUpdate */
export async function planClusterUpdate(given: UpdateManifest, flags: ApplyFlags): Promise<ManifestChange> {
  const { bundle, passphraseFile, result } = flags;
  const manifest = withProjectDrain(given, flags.project);
  const cluster = await openCluster(flags);
  const prepared = await prepareUpdate(cluster, manifest, { tasks: shownTasks(result), ...omitUndefined({ bundle }) });
  const { plan, draft, present } = prepared;
  const refusals = plan.result === "unchanged" ? [] : blockerProblems(plan);
  return {
    outcome: refusals.length > 0 ? "refused" : plan.result,
    differences:
      plan.result === "unchanged" ? [] : differingFields("cluster", leavesOf(present), leavesOf(draft, present)),
    notes: notesOf(prepared),
    ...(plan.result === "unchanged" ? {} : { picture: () => drawPlanBriefly(plan, { isRefused: true }).trimEnd() }),
    refusals,
    data: { plan },
    perform: async () => {
      if (refusals.length > 0) throw new KcoreError(refusals, { exitCode: exitCodes.failed });
      await submitUpdate(cluster, prepared, omitUndefined({ passphraseFile }));
      return exitCodes.done;
    },
  };
}

function notesOf({
  plan: { name, approval, result, attendance },
  draft: { spec },
  present,
}: PreparedUpdate): readonly string[] {
  if (result === "unchanged" && present) return nextSteps(present);
  return nextSteps({
    name,
    phase: "pending",
    spec,
    ...omitUndefined({ attendance }),
    approvalStatus: approval === "manual" ? "awaiting_approval" : "approved",
  });
}

type SpecAndBundle = Pick<UpdateView, "spec" | "bundle">;

/** The leaves of a spec and its bundle by their paths, such as `target.version`; leaves that only `other` has are undefined. */
function leavesOf(
  update: { readonly spec: SpecAndBundle["spec"]; readonly bundle?: SpecAndBundle["bundle"] } | undefined,
  other?: SpecAndBundle,
): Readonly<Record<string, unknown>> {
  const leaves: Record<string, unknown> = Object.fromEntries(
    other ? Object.keys(leavesOf(other)).map((path) => [path, undefined]) : [],
  );
  const walk = (value: unknown, path: string): void => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) leaves[path] = value;
    else for (const [key, inner] of Object.entries(value)) walk(inner, path === "" ? key : `${path}.${key}`);
  };
  if (update) walk(update.spec, "");
  if (update?.bundle) leaves["bundle"] = `kcore ${update.bundle.version} (${update.bundle.sha256})`;
  return leaves;
}
