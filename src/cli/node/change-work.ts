import type { WorkChange } from "#engine/orchestrate/project-hooks.ts";
import { KcoreError } from "#errors/problem.ts";
import { findProject } from "../project/find-project.ts";
import { projectHooks } from "../project/project-settings.ts";
import { viewFromFlags, type ViewFlags } from "../terminal/choose-view.ts";
import { requestOf, type RunFlags } from "../watch/run-request.ts";
import { startRun } from "../watch/start-run.ts";

export type WorkFlags = RunFlags & ViewFlags;

/**
 * Changes the work of nodes by the project's hooks: a run of orchestrate/node_work.yaml. Returns the exit code of the run.
 * @throws KcoreError HOOK_MISSING, and as startRun
 */
export async function changeWork(to: WorkChange, nodes: readonly string[], flags: WorkFlags): Promise<number> {
  const hooks = projectHooks(findProject(flags.project));
  if (!hooks.some((hook) => hook.for === to))
    throw new KcoreError({
      code: "HOOK_MISSING",
      message: `kcore.yaml of the project does not say how to ${to} a node`,
      hint: "write it under drain:, such as drain: { kubernetes: { kubeconfig: /etc/kubernetes/admin.conf } }; docs/removal.md has all keys",
    });
  const what = { kind: "orchestration", name: "node_work", title: `node ${to}` } as const;
  const request = requestOf({ ...flags, on: nodes }, what, { params: { to } });
  return (await startRun(flags, request, viewFromFlags(flags))).exitCode;
}
