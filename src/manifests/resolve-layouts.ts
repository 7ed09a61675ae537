import { runTask, type RunTasks } from "#base/tasks.ts";
import { layoutFromNix } from "#engine/layout/evaluate-layout.ts";
import { withReason } from "#engine/layout/reasons.ts";
import { KcoreError, type Problem } from "#errors/problem.ts";
import type { Manifest } from "./read-manifests.ts";

/**
 * The manifests, with layouts in Nix evaluated, as tasks, into the words of `spec.diskLayout`. @throws KcoreError with the problems of
 * all layouts
 */
export async function resolveLayouts(manifests: readonly Manifest[], tasks: RunTasks): Promise<readonly Manifest[]> {
  const problems: Problem[] = [];
  const resolved: Manifest[] = [];
  for (const manifest of manifests) {
    const source = manifest.kind === "DiskLayout" ? manifest.layout : undefined;
    if (manifest.kind !== "DiskLayout" || !source || !("nix" in source)) {
      resolved.push(manifest);
      continue;
    }
    try {
      const layout = await runTask(tasks, `evaluating the layout ${manifest.name}`, () => layoutFromNix(source));
      resolved.push({ ...manifest, layout });
    } catch (error) {
      if (!(error instanceof KcoreError)) throw error;
      problems.push(...error.problems);
    }
  }
  if (problems.length > 0) throw new KcoreError(problems.map((problem) => withReason(problem)));
  return resolved;
}
