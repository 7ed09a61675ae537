import { z } from "zod";
import { askOnce } from "#api/ask.ts";
import { defineAction, type ActionContext, type ActionResult } from "#engine/orchestrate/action.ts";
import { KcoreError } from "#errors/problem.ts";
import { areAway, askingOf, nodeOf, openContext, othersFirst } from "./cluster-context.ts";

const Args = z.strictObject({
  node: z.string().optional().describe("Name of the node in the roster; the stage's own node unless given"),
  port: z.int().min(1).max(65_535).default(9090).describe("Port of the controllers that the roster names"),
});
type Args = z.output<typeof Args>;

/**
 * Refuses a node that takes over a machine if one of its `formerIds` is still a node or controller of the cluster. Also refuses if no
 * controller answers: the node discards the keys and controller state of its former ids.
 */
export const clusterCheckRemoved = defineAction({
  name: "cluster.checkRemoved",
  summary: "Refuses a node if the cluster still has one of its formerIds, as a node or a controller.",
  outputs: [],
  args: Args,
  run: check,
  plan: check,
});

async function check({ node: name, port }: Args, context: ActionContext): Promise<ActionResult> {
  const node = nodeOf("cluster.checkRemoved", name, context);
  const former = node.formerIds ?? [];
  const cluster = await openContext(context);
  const asking = askingOf(cluster, context, othersFirst(node, port, cluster, context));
  const present = await askOnce(asking, async (client) => {
    const { nodes } = await client.call("listNodes", {});
    const { controllers } = await client.call("listControllers", {});
    const ids = { node: nodes.map(({ id }) => id), controller: controllers.map(({ controllerId }) => controllerId) };
    return (["node", "controller"] as const).flatMap((kind) =>
      former.filter((id) => ids[kind].includes(id)).map((id) => ({ kind, id })),
    );
  }).catch((error: unknown) => {
    if (!(error instanceof KcoreError) || !areAway(error)) throw error;
    const unsure = {
      code: "CLUSTER_UNHEALTHY",
      message: `no controller says whether ${former.join(" and ")} was removed, and ${node.name} would drop their keys and state`,
      hint: `kcore health, then run again; or keep the former node: give ${node.name} that id and no formerIds in the roster`,
    } as const;
    throw new KcoreError([unsure, ...error.problems], { cause: error, exitCode: 1 });
  });
  if (present.length === 0) return { changed: false, outputs: {} };
  throw new KcoreError(
    present.map(({ kind, id }) => ({
      code: "NODE_NOT_REMOVED" as const,
      message: `${node.name} takes over ${id}, which is a ${kind} of the cluster`,
      hint: `kcore ${kind} remove ${id}; or, if it is another machine, take it out of the formerIds of ${node.name} in the roster`,
    })),
    { exitCode: 1 },
  );
}
