import { KcoreError } from "#errors/problem.ts";
import type { Manifest } from "../manifests/read-manifests.ts";
import type { ApplyFlags } from "./apply-flags.ts";
import type { Change } from "./change.ts";

type UpdateManifest = Extract<Manifest, { kind: "ClusterUpdate" }>;

/** What a `ClusterUpdate` changes. @throws KcoreError */
export function planClusterUpdate({ at }: UpdateManifest, _: ApplyFlags): Promise<Change> {
  return Promise.reject(
    new KcoreError({ code: "USAGE", message: "a ClusterUpdate is applied by kcore update cluster apply", at }),
  );
}
