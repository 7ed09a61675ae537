import { homedir } from "node:os";
import { z } from "zod";
import type { ActionContext, ActionResult } from "#engine/orchestrate/action.ts";
import { checkOf } from "#engine/project/project.ts";
import { TextOrSecret } from "#engine/step/fields.ts";
import { Secret } from "#engine/step/secret.ts";
import { orAborted } from "#engine/transport/deadline.ts";
import { KubeApi } from "#kubernetes/api.ts";
import { openKubeCluster, type GivenKubeconfig } from "#kubernetes/kubeconfig.ts";

/** The arguments that choose a cluster and the user to act as. */
export const clusterArgs = {
  kubeconfig: z
    .union([
      z.string().regex(/^(?!\s*\{)[^\n]+$/, "must be a path; a kubeconfig's text stands under content: { content: … }"),
      z.instanceof(Secret),
      z.strictObject({ content: TextOrSecret.describe("The text, which may come from a node.") }),
    ])
    .describe(
      "A kubeconfig on the bastion: its path (relative to the project, ~/ is your home). Its text: a secret, or { content: … }.",
    ),
  context: z.string().min(1).optional().describe("A context of the kubeconfig; its current one unless given."),
};

/** The API of the cluster that the arguments name, and the context's namespace. @throws KcoreError as `openKubeCluster`; PROJECT_NOT_TRUSTED */
export async function openKubeApi(
  { kubeconfig, context }: { readonly kubeconfig: GivenKubeconfig; readonly context?: string | undefined },
  { project, trust, signal }: ActionContext,
): Promise<{ readonly api: KubeApi; readonly namespace: string }> {
  const cluster = await openKubeCluster({
    kubeconfig,
    context,
    project,
    home: homedir(),
    ...(trust && { check: checkOf(trust) }),
  });
  // A credential plugin can hang.
  const requestOptions = () => orAborted(cluster.requestOptions(), signal);
  return { api: new KubeApi({ ...cluster, requestOptions }, signal), namespace: cluster.namespace };
}

export interface EnsureResult extends ActionResult {
  /** Whether a dry run cannot know the result, since it cannot know how a wait would end. */
  readonly open: boolean;
}

/** `run` and `plan` of an action that does both by one function; for `plan` the function requests dry runs of the API server. */
export function runAndPlan<Given>(
  ensure: (given: Given, context: ActionContext, dryRun: boolean) => Promise<EnsureResult>,
): {
  run(given: Given, context: ActionContext): Promise<ActionResult>;
  plan(given: Given, context: ActionContext): Promise<ActionResult | "unknown">;
} {
  return {
    run: async (given, context) => ensure(given, context, false),
    async plan(given, context) {
      const { open, ...result } = await ensure(given, context, true);
      return open && !result.changed ? "unknown" : result;
    },
  };
}
