import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { replaceFile } from "#base/file.ts";
import { makeFolder } from "#base/folder.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import { KcoreError } from "#errors/problem.ts";
import { sshParams } from "#rollout/over-ssh.ts";
import { selectionFaults, matchSelector } from "#rollout/selection.ts";
import type { Bundle } from "#rollout/spec.ts";
import type { RolloutNode } from "#rollout/rollout-input.ts";
import { kcoreHome } from "../process/kcore-home.ts";
import { findProject } from "../project/find-project.ts";
import { ownRoster } from "../roster/own-roster.ts";
import { viewFromFlags, type ViewFlags } from "../terminal/choose-view.ts";
import { shownTasks } from "../terminal/shown-tasks.ts";
import { bundleFor, type FoundBundle } from "../update/bundles.ts";
import { readUpdateManifests, type UpdateManifest } from "../update/ask-updates.ts";
import { requestOf, type RunFlags } from "../watch/run-request.ts";
import { startRun } from "../watch/start-run.ts";

export interface UpdateFlags extends RunFlags, ViewFlags {
  readonly filename?: readonly string[];
  readonly bundle?: string;
  readonly rollback?: boolean;
}

/**
 * `kcore orchestrate update -f FILE`: runs orchestrate/update.yaml, or with --rollback update_rollback.yaml, for a manifest. Returns the
 * exit code of the run. @throws KcoreError USAGE, TARGET_EMPTY, UPDATE_INVALID, and as bundleFor
 */
export async function runUpdate({ filename = [], bundle, rollback = false, ...flags }: UpdateFlags): Promise<number> {
  const manifest = await readOnlyUpdate(filename, flags.project);
  const { nodes } = ownRoster(findProject(flags.project));
  const found = await bundleFor(manifest, bundle, shownTasks(flags.output));
  const params = {
    ...paramsFor(manifest, [...nodes.values()], { bundle: found?.bundle, isBack: rollback }),
    ...(found && !rollback && { file: await bundleParam(found) }),
  };
  const name = rollback ? "update_rollback" : "update";
  const what = { kind: "orchestration", name, title: `update ${manifest.name}` } as const;
  return (await startRun(flags, requestOf(flags, what, { params }), viewFromFlags(flags))).exitCode;
}

/** The parameters of a run for a manifest and the roster's nodes. @throws KcoreError TARGET_EMPTY, UPDATE_INVALID */
export function paramsFor(
  { name, spec }: Pick<UpdateManifest, "name" | "spec">,
  roster: readonly NodeEntry[],
  { bundle, isBack }: { readonly bundle: Bundle | undefined; readonly isBack: boolean },
): ReturnType<typeof sshParams> {
  const nodes = roster.map(rolloutNode);
  const chosen = matchSelector(nodes, spec.selector);
  if (chosen.length === 0)
    throw new KcoreError({
      code: "TARGET_EMPTY",
      message: `the selector of “${name}” means no node of the roster`,
      hint: "kcore roster show tells names, ids, datacenters and labels; allNodes: true means all",
    });
  const faults = isBack ? [] : selectionFaults(spec, { nodes, of: "the roster", selected: chosen });
  if (faults.length > 0)
    throw new KcoreError(faults.map((text) => ({ code: "UPDATE_INVALID", message: `“${name}”: ${text}` })));
  return sshParams({ name, spec, bundle, selected: nodes.filter((node) => chosen.includes(node)), isBack });
}

function rolloutNode({ id, name, dc, labels, roles }: NodeEntry): RolloutNode {
  const isController = roles.includes("controller");
  return { id, hostname: name, dc, labels, isController, isApproved: true, isReady: true, version: "" };
}

async function readOnlyUpdate(files: readonly string[], project: string | undefined): Promise<UpdateManifest> {
  const [manifest, second] = await readUpdateManifests(files, project);
  if (manifest && !second) return manifest;
  throw new KcoreError({
    code: "USAGE",
    message: manifest ? "a run carries out one update, and several are here" : "no file with an update is named",
    hint: "kcore orchestrate update -f rollout.yaml",
  });
}

/** The bundle as the run's parameter: the given file if it holds these bytes alone, else a cached copy, as a run resumed days later needs the bytes again. */
async function bundleParam({
  bundle,
  file,
  start,
}: FoundBundle): Promise<{ file: string; sha256: string; size: number }> {
  const { sha256, size } = bundle;
  if (start === 0) return { file, sha256, size };
  const folder = join(kcoreHome(), "cache", "bundles");
  const place = join(folder, sha256);
  if ((await stat(place).catch(() => undefined))?.size !== size) {
    await makeFolder(folder, { mode: 0o700 });
    await replaceFile(place, createReadStream(file, { start }));
  }
  return { file: place, sha256, size };
}
