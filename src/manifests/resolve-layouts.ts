import { layoutFromNix } from "#engine/layout/evaluate-layout.ts";
import { withReason } from "#engine/layout/reasons.ts";
import { KcoreError, type Problem } from "#errors/problem.ts";
import type { Manifest } from "./read-manifests.ts";

/**
 * The manifests, with layouts in Nix evaluated into the words of `spec.diskLayout`. @throws KcoreError with the problems of
 * all layouts
 */
export async function resolveLayouts(manifests: readonly Manifest[]): Promise<readonly Manifest[]> {
  const problems: Problem[] = [];
  const resolved: Manifest[] = [];
  for (const manifest of manifests) {
    if (manifest.kind !== "DiskLayout" || !("nix" in manifest.layout)) {
      resolved.push(manifest);
      continue;
    }
    try {
      resolved.push({ ...manifest, layout: await layoutFromNix(manifest.layout) });
    } catch (error) {
      if (!(error instanceof KcoreError)) throw error;
      problems.push(...error.problems);
    }
  }
  if (problems.length > 0) throw new KcoreError(problems.map((problem) => withReason(problem)));
  return resolved;
}
