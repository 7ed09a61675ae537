import type { ApplyFlags } from "./apply-flags.ts";
import type { Change } from "./change.ts";
import type { Manifest } from "../manifests/read-manifests.ts";
import { planCluster } from "./cluster-change.ts";
import { planNodeInstall } from "./install-change.ts";
import { planDiskLayout } from "./layout-change.ts";
import { planNode } from "./node-change.ts";
import { planClusterUpdate } from "./update-change.ts";

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
