import { cleanLine } from "#engine/events/clean.ts";
import { defined } from "#optional/defined.ts";
import { KcoreError } from "#errors/problem.ts";
import { openCluster } from "../cluster/open-cluster.ts";
import type { ClusterFlags, ResultFormat } from "../options.ts";
import { formatResult, isForPeople } from "../terminal/format-result.ts";
import { drawPlan, shortHash } from "./draw-plan.ts";
import { nextSteps } from "./next-steps.ts";
import { followOne } from "./follow-command.ts";
import { readUpdates, type NameFlags, type UpdateManifest } from "./named-updates.ts";
import { prepareUpdate, requireViable } from "./prepare-update.ts";
import type { AppliedUpdate } from "./hand-over.ts";
import { submitUpdate } from "./submit-update.ts";

export type ApplyFlags = ClusterFlags &
  NameFlags & {
    readonly bundle?: string;
    readonly again?: boolean;
    readonly passphraseFile?: string;
    readonly watch?: boolean;
    readonly output: ResultFormat;
  };

/** `kcore update cluster apply`. @throws KcoreError UPDATE_BLOCKED, and as submitUpdate */
export async function applyUpdates({ filename = [], watch = false, output, ...flags }: ApplyFlags): Promise<void> {
  const manifests = await readUpdates(filename);
  const [first, second] = manifests;
  if (!first || (watch && second))
    throw new KcoreError({
      code: "USAGE",
      message: first ? "--watch follows one update, and several are here" : "no file with an update is named",
      hint: first ? "kcore update cluster get NAME -w follows each of them" : "-f FILE, or -f - for what comes in",
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

async function applyOne(manifest: UpdateManifest, { bundle, again, output, passphraseFile, ...flags }: ApplyFlags) {
  const cluster = await openCluster(flags);
  const prepared = await prepareUpdate(cluster, manifest, defined({ bundle, again }));
  const { plan } = prepared;
  // Which nodes keep it from being done; why stands in the error.
  if (!plan.viable && plan.result !== "unchanged" && isForPeople(output))
    process.stdout.write(
      formatResult(plan, output, (wide) => `${drawPlan(plan, { wide, now: Date.now(), isRefused: true })}\n`),
    );
  if (plan.result !== "unchanged") requireViable(plan);
  return submitUpdate(cluster, prepared, defined({ passphraseFile, again }));
}

/** The result, and the next command; `spec`: the update's hooks still need `kcore update cluster attend`. */
function drawApplied(applied: AppliedUpdate, spec: UpdateManifest["spec"] | undefined): string {
  const { name, result, generation, hash } = applied;
  return [
    cleanLine(`${name} ${result}: generation ${generation}, hash ${shortHash(hash)}`),
    ...nextSteps({ ...applied, spec }),
    "",
  ].join("\n");
}
