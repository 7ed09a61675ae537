import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { replaceFile } from "#base/file.ts";
import { makeFolder } from "#base/folder.ts";
import { KcoreError } from "#errors/problem.ts";
import { kcoreHome } from "../../process/kcore-home.ts";
import { findProject } from "../../project/find-project.ts";
import { ownRoster } from "../../roster/own-roster.ts";
import { viewOf, type ViewFlags } from "../../terminal/choose-view.ts";
import type { FoundBundle } from "../../update/bundle-file.ts";
import { bundleFor } from "../../update/bundles.ts";
import { readUpdates, type UpdateManifest } from "../../update/named-updates.ts";
import { requestOf, type RunFlags } from "../../watch/run-options.ts";
import { startRun } from "../../watch/start-run.ts";
import { composeUpdate } from "./compose.ts";

export interface UpdateFlags extends RunFlags, ViewFlags {
  readonly filename?: readonly string[];
  readonly bundle?: string;
  readonly rollback?: boolean;
}

/**
 * `kcore orchestrate update -f FILE`: an update over SSH, without controllers. Gives the exit code of the run.
 * @throws KcoreError USAGE, TARGET_EMPTY, and as findBundle
 */
export async function runUpdate({
  filename = [],
  bundle: given,
  rollback = false,
  ...flags
}: UpdateFlags): Promise<number> {
  const { name, spec } = await oneOf(filename);
  const { nodes } = ownRoster(findProject(flags.project));
  const found = await bundleFor({ name, spec }, given);
  const runtime = found && { bundle: found.bundle, file: await plainFile(found) };
  const { text, params } = composeUpdate({ name, spec, runtime, nodes: nodes.values(), isBack: rollback });
  const request = requestOf(flags, { kind: "composed", name: `update ${name}`, text }, { params });
  return (await startRun(flags, request, viewOf(flags))).exitCode;
}

async function oneOf(files: readonly string[]): Promise<UpdateManifest> {
  const [manifest, second] = await readUpdates(files);
  if (manifest && !second) return manifest;
  throw new KcoreError({
    code: "USAGE",
    message: manifest ? "a run carries out one update, and several are here" : "no file with an update is named",
    hint: "kcore orchestrate update -f rollout.yaml",
  });
}

/** A file with the bundle's bytes and nothing else: a run that is resumed days later needs it as well. */
async function plainFile({ bundle, file, start }: FoundBundle): Promise<string> {
  if (start === 0) return file;
  const folder = join(kcoreHome(), "cache", "bundles");
  const place = join(folder, bundle.sha256);
  if ((await stat(place).catch(() => undefined))?.size === bundle.size) return place;
  await makeFolder(folder, { mode: 0o700 });
  await replaceFile(place, createReadStream(file, { start }));
  return place;
}
