import { z } from "zod";
import { askOnce } from "#api/ask.ts";
import { ApiRefusal } from "#api/client.ts";
import { poll } from "#base/wait.ts";
import { type ActionContext, defineAction } from "#engine/orchestrate/action.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import { KcoreError } from "#errors/problem.ts";
import { askingOf, endpointsFor, isController, nodeOf, openContext } from "./cluster-context.ts";

/** Milliseconds in which a controller on the updated node itself has to answer again. */
const patienceMs = 10_000;
const pauseMs = 1_000;

/**
 * After an update: waits until a controller reports the node as ready, at that version. It succeeds with a note if no controller answers,
 * knows the node, or lets the run ask.
 * ```yaml
 * - { id: ready, run: update.ready, version: "0.2.0", within: 300, each: "{{params.nodes}}" }
 * ```
 */
export const updateReady = defineAction({
  name: "update.ready",
  summary: "Waits until a node is ready at a version, where a controller can tell.",
  outputs: [],
  args: z.strictObject({
    version: z.string().default("").describe("The version of kcore that the node shall run; any, unless given."),
    within: z.number().positive().default(300).describe("Seconds that the node may take to be ready."),
    port: z.int().min(1).max(65_535).default(9090).describe("Port of the controllers that the roster names."),
  }),
  async run({ version, within, port }, context) {
    const node = nodeOf("update.ready", undefined, context);
    const patience = performance.now() + (isController(node) ? Math.min(patienceMs, within * 1000) : 0);
    let missing: string | undefined;
    const isDone = async (): Promise<boolean> => {
      const found = await findReadiness(node, version, port, context);
      ({ missing } = found);
      if (missing === undefined) return true;
      if (found.isUnanswered !== true || performance.now() < patience) return false;
      context.note(`not asked whether ${node.name} is ready: ${missing}`);
      return true;
    };
    if (await poll(isDone, { everyMs: pauseMs, limitMs: within * 1000, signal: context.signal })) return unchanged;
    throw new KcoreError(
      {
        code: "NODE_NOT_READY",
        message: `${node.name} is not ready after ${within} s: ${missing}`,
        hint: `kcore exec --on ${node.name} -- journalctl -n 30 -u kcore-node-agent -u kcore-updater`,
      },
      { exitCode: 1 },
    );
  },
  plan: (_, { note }) => {
    note("would ask a controller, where one answers, whether it is ready");
    return Promise.resolve(unchanged);
  },
});

const unchanged = { changed: false, outputs: {} } as const;

/** The missing condition, if any. `isUnanswered`: no controller answered, knows the node, or lets the run ask. */
async function findReadiness(
  node: NodeEntry,
  version: string,
  port: number,
  context: ActionContext,
): Promise<{ readonly missing?: string; readonly isUnanswered?: boolean }> {
  const cluster = await openContext(context);
  try {
    const asking = askingOf(cluster, context, endpointsFor(node, port, cluster, context));
    const view = await askOnce(asking, (client) => client.call("getNode", {}, { id: node.id }));
    if (view.status !== "ready") return { missing: view.reason ?? `it is ${view.status}` };
    if (version === "" || view.version === version) return {};
    return { missing: `it says that it runs ${view.version}, not ${version}` };
  } catch (error) {
    if (!(error instanceof KcoreError)) throw error;
    const isUnknown = error instanceof ApiRefusal && error.status === 404;
    return { missing: isUnknown ? "no controller knows it" : error.message, isUnanswered: true };
  }
}
