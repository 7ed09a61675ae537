import { askFirst } from "#api/ask.ts";
import { ApiRefusal } from "#api/client.ts";
import type { ActionContext } from "#engine/orchestrate/action.ts";
import { areAway, askingOf, openContext } from "./cluster-place.ts";

const asked = new Map<string, Promise<ReadonlySet<string> | undefined>>();

/** The recorded keys that the cluster has revoked, asked once a run; undefined when no controller tells. */
export function revokedKeys(context: ActionContext): Promise<ReadonlySet<string> | undefined> {
  const key = `${context.runId} ${context.home} ${context.context ?? ""}`;
  const asking = asked.get(key) ?? ask(context);
  asked.set(key, asking);
  asking.catch(() => asked.delete(key));
  return asking;
}

async function ask(context: ActionContext): Promise<ReadonlySet<string> | undefined> {
  const cluster = await openContext(context);
  if (cluster.controllers.length === 0) return undefined;
  try {
    const { certificates } = await askFirst(askingOf(cluster, context, cluster.controllers), (client) =>
      client.call("listCertificates", {}),
    );
    return new Set(certificates.filter(({ status }) => status === "revoked").map(({ spki }) => spki));
  } catch (error) {
    if (areAway(error) || error instanceof ApiRefusal) return undefined;
    throw error;
  }
}
