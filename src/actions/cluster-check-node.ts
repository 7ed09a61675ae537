import { z } from "zod";
import { askOnce } from "#api/ask.ts";
import type { NodeView } from "#api/schemas.ts";
import { defineAction, type ActionContext, type ActionResult } from "#engine/orchestrate/action.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import { KcoreError } from "#errors/problem.ts";
import { askingOf, endpointsFor, nodeOf, openContext } from "./cluster-context.ts";

const Args = z.strictObject({
  node: z.string().optional().describe("Name of the node in the roster; the stage's own node unless given"),
  port: z.int().min(1).max(65_535).default(9090).describe("Port of the controllers that the roster names"),
});
type Args = z.output<typeof Args>;

/**
 * Checks that the cluster has a node as the roster says: ready, with its datacenter, roles, labels and taints.
 * ```yaml
 * - { id: member, run: cluster.checkNode, each: "{{params.nodes}}" }
 * ```
 */
export const clusterCheckNode = defineAction({
  name: "cluster.checkNode",
  summary: "Checks that the cluster has a node ready, with the roles, labels and taints of the roster.",
  outputs: [],
  args: Args,
  run: check,
  plan: check,
});

async function check({ node: name, port }: Args, context: ActionContext): Promise<ActionResult> {
  const node = nodeOf("cluster.checkNode", name, context);
  const cluster = await openContext(context);
  const asking = askingOf(cluster, context, endpointsFor(node, port, cluster, context));
  const view = await askOnce(asking, (client) => client.call("getNode", {}, { id: node.id }));
  const differences = differencesOf(node, view);
  if (differences.length === 0) return { changed: false, outputs: {} };
  throw new KcoreError({
    code: "NODE_DIFFERS",
    message: `${node.name} is not as the roster says: ${differences.join("; ")}`,
    hint: `kcore orchestrate deploy_node ${node.name} brings the cluster to the roster's word; kcore describe node ${node.name} shows what it has`,
  });
}

/** The differences between the cluster and the roster; labels that the roster does not name may be there. */
export function differencesOf(
  { dc, roles, labels, taints }: Pick<NodeEntry, "dc" | "labels" | "roles" | "taints">,
  view: Pick<NodeView, "approval" | "dc" | "labels" | "reason" | "roles" | "status" | "taints">,
): readonly string[] {
  const has = (wanted: NodeEntry["taints"][number]): boolean =>
    view.taints.some(
      ({ key, value, effect }) => key === wanted.key && value === wanted.value && effect === wanted.effect,
    );
  return [
    ...(view.approval === "approved" ? [] : [`it is ${view.approval}`]),
    ...(view.status === "ready" ? [] : [`it is ${view.status}${view.reason === undefined ? "" : ` (${view.reason})`}`]),
    ...(view.dc === dc ? [] : [`its datacenter is ${view.dc || "none"}, not ${dc}`]),
    ...roles.filter((role) => !view.roles.includes(role)).map((role) => `it lacks the role ${role}`),
    ...Object.entries(labels)
      .filter(([key, value]) => view.labels[key] !== value)
      .map(([key, value]) => `its label ${key} is ${view.labels[key] ?? "missing"}, not ${value}`),
    ...taints.filter((taint) => !has(taint)).map(({ key, effect }) => `it lacks the taint ${key}:${effect}`),
  ];
}
