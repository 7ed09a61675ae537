import type { ProjectHook } from "#engine/orchestrate/project-hooks.ts";
import { isHook } from "#rollout/hooks.ts";
import type { UpdateSpec } from "#rollout/spec.ts";
import { fromProject } from "../project/project-cluster.ts";
import { projectHooks } from "../project/project-settings.ts";

type Spec = { readonly spec: UpdateSpec };

/**
 * The manifest with the drain of the project's kcore.yaml, if it enables a drain and names no hook of its own. The bastion signs the result.
 * @throws KcoreError as projectHooks
 */
export function withProjectDrain<Manifest extends Spec>(manifest: Manifest, project: string | undefined): Manifest {
  const { drain } = manifest.spec;
  if (!drain.enabled || isHook(drain)) return manifest;
  const hooks = fromProject(project, projectHooks) ?? [];
  const [own] = hooks.filter((hook) => hook.for === "drain");
  const [back] = hooks.filter((hook) => hook.for === "undrain");
  if (!own) return manifest;
  const after = drain.after ?? (back && hookFor(back, "undrain"));
  return {
    ...manifest,
    spec: { ...manifest.spec, drain: { ...drain, ...hookFor(own, "drain"), ...(after && { after }) } },
  };
}

/** A hook as a manifest has it. Kubernetes' API is asked by the command that an operator would type. */
function hookFor({ kind, state, params, command }: ProjectHook, to: "drain" | "undrain") {
  if (kind === "state") return { state, params };
  return { command: kind === "command" ? command : `kcore node ${to} "$KCORE_NODE"` };
}
