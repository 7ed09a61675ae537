import { buffer } from "node:stream/consumers";
import { readBytes } from "#engine/yaml/read.ts";
import type { ApplyFlags } from "./apply-flags.ts";
import type { Change } from "./change.ts";
import { readManifests, type Manifest } from "../manifests/read-manifests.ts";
import { planCluster } from "./cluster-change.ts";
import { settleLayouts } from "../layout/settle-layouts.ts";
import { planNodeInstall } from "./install-change.ts";
import { planDiskLayout } from "./layout-change.ts";
import { planNode } from "./node-change.ts";
import { planClusterUpdate } from "./update-change.ts";

/** The manifests of files, `-` for what comes in; all of them are read before anything is done. @throws KcoreError */
export async function readFiles(files: readonly string[]): Promise<readonly Manifest[]> {
  const texts: { readonly file: string; readonly bytes: Uint8Array }[] = [];
  for (const file of files) texts.push({ file, bytes: file === "-" ? await buffer(process.stdin) : readBytes(file) });
  return settleLayouts(texts.flatMap(({ file, bytes }) => readManifests(file, bytes)));
}

/** What applying one manifest would do now. @throws KcoreError */
export async function planManifest(manifest: Manifest, flags: ApplyFlags): Promise<Change> {
  switch (manifest.kind) {
    case "Cluster":
      return planCluster(manifest, flags);
    case "NodeInstall":
      return planNodeInstall(manifest, flags);
    case "Node":
      return planNode(manifest, flags);
    case "DiskLayout":
      return planDiskLayout(manifest, flags);
    case "ClusterUpdate":
      return planClusterUpdate(manifest, flags);
  }
}

/** `node/n1`, as results name a manifest. */
export function titleOf({ kind, name }: Manifest): string {
  return `${kind.toLowerCase()}/${name}`;
}
