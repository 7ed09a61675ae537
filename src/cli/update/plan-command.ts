import type { UpdatePlan } from "#api/update-schemas.ts";
import { exitCodes, KcoreError } from "#errors/problem.ts";
import { defined } from "#optional/defined.ts";
import { openCluster, type Cluster } from "../cluster/open-cluster.ts";
import type { ClusterFlags, ResultFormat } from "../options.ts";
import { formatResult } from "../terminal/format-result.ts";
import { askUpdates, getUpdate } from "./ask-updates.ts";
import { drawPlan } from "./draw-plan.ts";
import { readUpdates, type NameFlags } from "./named-updates.ts";
import { prepareUpdate } from "./prepare-update.ts";

export type PlanFlags = ClusterFlags &
  NameFlags & { readonly bundle?: string; readonly again?: boolean; readonly output: ResultFormat };

/** `kcore update cluster plan`: of manifests, or of an update that stands, as it would be now. @throws KcoreError */
export async function planUpdates(
  name: string | undefined,
  { filename = [], bundle, again, output, ...flags }: PlanFlags,
): Promise<void> {
  if ((name === undefined) === (filename.length === 0))
    throw new KcoreError({
      code: "USAGE",
      message: name === undefined ? "no update is named" : "an update and a file are named, and one of them is wanted",
      hint: "-f FILE with its manifest, or the name of one that stands",
    });
  const cluster = await openCluster(flags);
  const plans: UpdatePlan[] = [];
  if (name !== undefined) plans.push(await planOfPresent(cluster, name, again));
  for (const manifest of await readUpdates(filename))
    plans.push((await prepareUpdate(cluster, manifest, defined({ bundle, again }))).plan);
  const draw = (wide: boolean): string => plans.map((plan) => drawPlan(plan, { wide, now: Date.now() })).join("\n");
  process.stdout.write(formatResult(plans, output, draw));
  if (plans.some(({ viable }) => !viable)) process.exitCode = exitCodes.failed;
}

/** What the update that stands would do if it began now. @throws KcoreError UPDATE_UNKNOWN */
export async function planOfPresent(cluster: Pick<Cluster, "ask">, name: string, again?: boolean): Promise<UpdatePlan> {
  const { spec, bundle } = await getUpdate(cluster, name);
  return askUpdates(cluster, (client) => client.call("planUpdate", { name, spec, ...defined({ bundle, again }) }));
}
