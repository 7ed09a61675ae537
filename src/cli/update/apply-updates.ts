import type { UpdatePlan } from "#api/update-schemas.ts";
import { cleanLine } from "#engine/events/clean.ts";
import { exitCodes, KcoreError } from "#errors/problem.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { openCluster } from "../cluster/open-cluster.ts";
import type { ClusterFlags, ResultFormat } from "../options.ts";
import { formatResult, isForPeople } from "../terminal/format-result.ts";
import { shownTasks } from "../terminal/shown-tasks.ts";
import { readUpdateManifests, type NameFlags, type UpdateManifest } from "./ask-updates.ts";
import { drawUpdatePlan, shortHash } from "./draw-plan.ts";
import { nextSteps } from "./draw-update.ts";
import { followOne } from "./follow-update.ts";
import { type AppliedUpdate, planOfPresent, prepareUpdate, requireViable, submitUpdate } from "./submit-update.ts";

export type ApplyUpdateFlags = ClusterFlags &
  NameFlags & {
    readonly bundle?: string;
    readonly again?: boolean;
    readonly passphraseFile?: string;
    readonly watch?: boolean;
    readonly output: ResultFormat;
  };

export type PlanUpdateFlags = ClusterFlags &
  NameFlags & { readonly bundle?: string; readonly again?: boolean; readonly output: ResultFormat };

/**
 * `kcore update cluster plan`: prints the plan of manifests, or of a present update, as of now.
 * @throws KcoreError USAGE, and as prepareUpdate
 */
export async function planUpdates(
  name: string | undefined,
  { filename = [], bundle, again, output, ...flags }: PlanUpdateFlags,
): Promise<void> {
  if ((name === undefined) === (filename.length === 0))
    throw new KcoreError({
      code: "USAGE",
      message: name === undefined ? "no update is named" : "an update and a file are named, and one of them is wanted",
      hint: "-f FILE with its manifest, or the name of one that stands",
    });
  const cluster = await openCluster(flags);
  const plans: UpdatePlan[] = [];
  const tasks = shownTasks(output);
  if (name !== undefined) plans.push(await planOfPresent(cluster, name, again));
  for (const manifest of await readUpdateManifests(filename, flags.project))
    plans.push((await prepareUpdate(cluster, manifest, { tasks, ...omitUndefined({ bundle, again }) })).plan);
  const draw = (wide: boolean): string =>
    plans.map((plan) => drawUpdatePlan(plan, { wide, now: Date.now() })).join("\n");
  process.stdout.write(formatResult(plans, output, draw));
  if (plans.some(({ viable }) => !viable)) process.exitCode = exitCodes.failed;
}

/** `kcore update cluster apply`. @throws KcoreError UPDATE_BLOCKED, and as submitUpdate */
export async function applyUpdates({
  filename = [],
  watch = false,
  output,
  ...flags
}: ApplyUpdateFlags): Promise<void> {
  const manifests = await readUpdateManifests(filename, flags.project);
  const [first, second] = manifests;
  if (!first || (watch && second))
    throw new KcoreError({
      code: "USAGE",
      message: first ? "--watch follows one update, and several are here" : "no file with an update is named",
      hint: first ? "kcore update cluster get NAME -w follows each of them" : "-f FILE, or -f - for stdin",
    });
  const done: AppliedUpdate[] = [];
  try {
    for (const manifest of manifests) {
      const applied = await applyOne(manifest, { output, ...flags });
      done.push(applied);
      if (isForPeople(output)) process.stdout.write(drawApplied(applied, watch ? undefined : manifest.spec));
    }
  } finally {
    if (!watch && !isForPeople(output)) process.stdout.write(formatResult(done, output, () => ""));
  }
  if (watch) await followOne(first.name, { output, ...flags }, { generation: done[0]?.generation ?? 1 });
}

async function applyOne(
  manifest: UpdateManifest,
  { bundle, again, output, passphraseFile, ...flags }: ApplyUpdateFlags,
) {
  const cluster = await openCluster(flags);
  const tasks = shownTasks(output);
  const prepared = await prepareUpdate(cluster, manifest, { tasks, ...omitUndefined({ bundle, again }) });
  const { plan } = prepared;
  // The table shows the blocked nodes, the error below it has the reasons.
  if (!plan.viable && plan.result !== "unchanged" && isForPeople(output))
    process.stdout.write(
      formatResult(plan, output, (wide) => `${drawUpdatePlan(plan, { wide, now: Date.now(), isRefused: true })}\n`),
    );
  if (plan.result !== "unchanged") requireViable(plan);
  return submitUpdate(cluster, prepared, omitUndefined({ passphraseFile, again }));
}

/** The result, and the next commands; with `spec` also the command that runs the update's hooks. */
function drawApplied(applied: AppliedUpdate, spec: UpdateManifest["spec"] | undefined): string {
  const { name, result, generation, hash } = applied;
  return [
    cleanLine(`${name} ${result}: generation ${generation}, hash ${shortHash(hash)}`),
    ...nextSteps({ ...applied, spec }),
    "",
  ].join("\n");
}
