import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import { retry } from "#base/wait.ts";
import { askOnce } from "#api/ask.ts";
import { ApiRefusal, type ApiClient } from "#api/client.ts";
import { defineAction, type ActionContext, type ActionResult } from "#engine/orchestrate/action.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import { readText } from "#base/file.ts";
import { inventoryEntry, type CertificateEntry } from "#pki/issued.ts";
import { areAway, askingOf, nodeOf, openContext, othersFirst } from "./cluster-context.ts";

const Args = z.strictObject({
  node: z.string().optional().describe("Name of the node in the roster; the stage's own node unless given"),
  issued: z
    .object({
      nodeCert: z.string().describe("The node's certificate and its issuers', PEM"),
      controllerCert: z.string().optional().describe("The certificate of a controller's API, PEM"),
      subCaCert: z.string().optional().describe("The certificate of a controller's sub-CA, PEM"),
    })
    .describe("The outputs of pki.issueNode for this node"),
  timeout: z.number().positive().max(600).default(60).describe("Seconds until a controller must have answered"),
  port: z.int().min(1).max(65_535).default(9090).describe("Port of the controllers that the roster names"),
});
type Args = z.output<typeof Args>;

/**
 * Records in the cluster the certificates that the bastion issued to a node, the operator's certificate, and the roster's
 * settings of the node. So every controller knows the node's keys (S-10).
 */
export const clusterRecord = defineAction({
  name: "cluster.record",
  summary: "Tells the cluster which certificates a node was issued, and what the roster expects of it.",
  outputs: [],
  args: Args,
  async run(args, context) {
    const patience = { everyMs: 250, limitMs: args.timeout * 1000, signal: context.signal };
    return retry(() => record(args, context, recordEntries), { ...patience, mayHelp: isNotUpYet });
  },
  async plan(args, context) {
    try {
      return await record(args, context, compareEntries);
    } catch (error) {
      // Perhaps this run still deploys the controller that records the certificates.
      if (isNotUpYet(error)) return "unknown";
      throw error;
    }
  },
});

/** Records a node's entries and settings at a controller, or only compares them; returns whether any was new or different. */
type RecordEntries = (client: ApiClient, node: NodeEntry, entries: readonly CertificateEntry[]) => Promise<boolean>;

async function record(
  { node: name, issued, port }: Args,
  context: ActionContext,
  recording: RecordEntries,
): Promise<ActionResult> {
  const node = nodeOf("cluster.record", name, context);
  const cluster = await openContext(context);
  const texts = [
    issued.nodeCert,
    issued.controllerCert,
    issued.subCaCert,
    await readText(join(cluster.folder, "kctl.crt")),
  ];
  const entries = texts.flatMap((pem) => (pem === undefined ? [] : (inventoryEntry(pem) ?? [])));
  const endpoints = othersFirst(node, port, cluster, context);
  const changed = await askOnce(askingOf(cluster, context, endpoints), (client) => recording(client, node, entries));
  return { changed, outputs: {} };
}

const recordEntries: RecordEntries = async (client, node, entries) => {
  const results: string[] = [];
  for (const entry of entries) results.push((await client.call("recordCertificate", entry)).result);
  results.push((await client.call("setExpected", expectationOf(node), { id: node.id })).result);
  return results.some((result) => result !== "unchanged");
};

const compareEntries: RecordEntries = async (client, node, entries) => {
  await refuseRemoved(client, node);
  const { certificates } = await client.call("listCertificates", {});
  const known = new Set(certificates.map(({ serial }) => serial));
  if (entries.some(({ serial }) => !known.has(serial))) return true;
  const { nodes } = await client.call("listNodes", {});
  if (!nodes.some(({ id }) => id === node.id)) return true;
  const { expected } = await client.call("getNode", {}, { id: node.id });
  return !isDeepStrictEqual(expected, expectationOf(node));
};

/** @throws ApiRefusal NODE_REMOVED if the cluster has removed the node */
async function refuseRemoved(client: ApiClient, { id }: NodeEntry): Promise<void> {
  await client.call("getNode", {}, { id }).catch((error: unknown) => {
    if (!(error instanceof ApiRefusal) || error.reason !== "NODE_UNKNOWN") throw error;
  });
}

function expectationOf({ name, roles, dc, address }: NodeEntry) {
  return { name, roles: [...roles], dc, address, source: "roster" as const };
}

/** Whether the error can mean that the controller is still starting: it answered 503, or no controller was reached. */
function isNotUpYet(error: unknown): boolean {
  if (error instanceof ApiRefusal) return error.status === 503;
  return areAway(error);
}
