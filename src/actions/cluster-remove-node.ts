import { z } from "zod";
import { askOnce } from "#api/ask.ts";
import { ApiRefusal, type ApiClient } from "#api/client.ts";
import { defineAction, type ActionContext, type ActionResult } from "#engine/orchestrate/action.ts";
import { askingOf, nodeOf, openContext, othersFirst } from "./cluster-context.ts";

const Args = z.strictObject({
  node: z.string().optional().describe("Name of the node in the roster; the stage's own node unless given"),
  reason: z.string().max(500).default("").describe("Kept with the removal"),
  port: z.int().min(1).max(65_535).default(9090).describe("Port of the controllers that the roster names"),
});
type Args = z.output<typeof Args>;

/** Removes a node from the cluster for good, and revokes all its keys in the same write. A removed id is never used again. */
export const clusterRemoveNode = defineAction({
  name: "cluster.removeNode",
  summary: "Removes a node's record from the cluster and revokes its keys; its id is never used again.",
  outputs: ["removed"],
  args: Args,
  run: (args, context) =>
    ask(args, context, async (client, id) => {
      const body = args.reason === "" ? {} : { reason: args.reason };
      return (await client.call("removeNode", body, { id })).result !== "unchanged";
    }),
  plan: (args, context) =>
    ask(args, context, (client, id) =>
      client.call("getNode", {}, { id }).then(
        () => true,
        (error: unknown) => {
          if (!(error instanceof ApiRefusal)) throw error;
          if (error.reason !== "NODE_REMOVED" && error.reason !== "NODE_UNKNOWN") throw error;
          return error.reason === "NODE_UNKNOWN";
        },
      ),
    ),
});

async function ask(
  { node: name, port }: Args,
  context: ActionContext,
  work: (client: ApiClient, id: string) => Promise<boolean>,
): Promise<ActionResult> {
  const node = nodeOf("cluster.removeNode", name, context);
  const cluster = await openContext(context);
  const asking = askingOf(cluster, context, othersFirst(node, port, cluster, context));
  const changed = await askOnce(asking, (client) => work(client, node.id));
  return { changed, outputs: { removed: true } };
}
