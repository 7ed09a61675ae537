import { z } from "zod";
import { type ActionContext, defineAction } from "#engine/orchestrate/action.ts";
import { Duration } from "#engine/step/fields.ts";
import { exitCodes, KcoreError } from "#errors/problem.ts";
import type { KubeApi } from "#kubernetes/api.ts";
import { fieldManager, PathPart, type ApiTarget } from "#kubernetes/target.ts";
import { awaitGone, deleteObject } from "#kubernetes/apply.ts";
import { missingOf } from "#kubernetes/conditions.ts";
import { NodeDrain, podName, firstNames, type PodChoice } from "#kubernetes/drain.ts";
import { changedNode, nodeChange, splitTaint, type NodeChange, type WantedMarks } from "#kubernetes/node-change.ts";
import { NodeShape, type KubeNode } from "#kubernetes/objects.ts";
import { pollUntil } from "#kubernetes/poll-until.ts";
import { KubeRefusal } from "#kubernetes/refusals.ts";
import { clusterArgs, openKubeApi, runAndPlan, type EnsureResult } from "./kubernetes-cluster.ts";

/** The maximum number of attempts to patch a node that other clients change meanwhile. */
const TRIES = 10;
const READY = { condition: "Ready", status: "True" } as const;

const Values = z.record(z.string().min(1), z.string().nullable());
const EFFECTS = ["NoSchedule", "PreferNoSchedule", "NoExecute"] as const;
const Taints = z.union([
  Values.refine(
    (taints) =>
      Object.entries(taints).every(([name, value]) => {
        const { effect } = splitTaint(name);
        return effect === undefined ? value === null : EFFECTS.some((known) => known === effect);
      }),
    "names must be KEY:EFFECT with the effect NoSchedule, PreferNoSchedule or NoExecute; KEY alone only with null",
  ),
  z
    .array(
      z.strictObject({
        key: z.string().min(1).describe("The key of the taint."),
        value: z.string().default("").describe("The value of the taint."),
        effect: z.enum(EFFECTS).describe("The effect on pods that do not tolerate the taint."),
      }),
    )
    .transform((taints) => Object.fromEntries(taints.map(({ key, value, effect }) => [`${key}:${effect}`, value]))),
]);

const args = z
  .strictObject({
    ...clusterArgs,
    name: PathPart.optional().describe("The node's name in the cluster; that of the stage's node unless given."),
    labels: Values.optional().describe("Labels of the node; null takes one away, others stay."),
    annotations: Values.optional().describe("Annotations of the node; null takes one away, others stay."),
    taints: Taints.optional().describe(
      "Taints of the node, KEY:EFFECT and the value (which may be empty); null takes one away, others stay. Or a list, as node.taints.",
    ),
    cordoned: z.boolean().optional().describe("True: no new pods come to the node; false: pods come again."),
    drained: z.boolean().default(false).describe("Cordons the node; evicts pods as their disruption budgets allow."),
    deleteEmptyDirData: z.boolean().default(false).describe("Pods may lose what is in their emptyDir."),
    force: z.boolean().default(false).describe("Pods may go that no controller starts elsewhere."),
    gracePeriod: Duration.optional().describe(
      "Time for a pod to end, such as 30s; by default the time that the pod itself names.",
    ),
    drainTimeout: Duration.default(1800).describe("How long a drain may take, such as 10m."),
    ready: z.boolean().default(false).describe("Waits until the node has joined and is Ready, before uncordoning."),
    readyTimeout: Duration.default(300).describe("Time for the node to join, to be Ready, or to be gone, such as 5m."),
    hasWork: z
      .boolean()
      .default(false)
      .describe("Fails if no pod runs on the node but those of DaemonSets and mirrors of static pods."),
    mayBeMissing: z.boolean().default(false).describe("A node that is not in the cluster is left alone: no error."),
    absent: z.boolean().default(false).describe("Deletes the node's object; with drained, after the drain."),
  })
  .refine(({ drained, cordoned }) => !drained || cordoned !== false, "a drained node is cordoned")
  .refine(
    ({ absent, labels, annotations, taints, cordoned, ready }) =>
      !absent || (!labels && !annotations && !taints && cordoned === undefined && !ready),
    "a node that is absent has no labels, annotations, taints, and is neither cordoned nor ready",
  );
type Args = z.output<typeof args>;

/**
 * A node of a Kubernetes cluster: its labels and taints, whether pods may be scheduled on it, whether it exists.
 * ```yaml
 * - { id: drain, run: kubernetes.node, kubeconfig: /etc/kubernetes/admin.conf, drained: true, each: "{{params.nodes}}", batch: 1 }
 * ```
 */
export const kubernetesNode = defineAction({
  name: "kubernetes.node",
  summary: "Keeps labels, annotations and taints of a node; cordons, drains, waits for and deletes it.",
  outputs: ["exists", "kubeletVersion", "name"],
  bastionNames: ["kubeconfig"],
  args,
  ...runAndPlan(ensure),
});

/** The planned changes of a dry run, by run, cluster and node: later stages see the node with them. */
const plannedChanges = new Map<string, readonly NodeChange[] | "deleted">();

interface NodeWork {
  readonly given: Args;
  readonly context: ActionContext;
  readonly api: KubeApi;
  readonly name: string;
  readonly target: ApiTarget;
  readonly dryRun: boolean;
}

async function ensure(given: Args, context: ActionContext, dryRun: boolean): Promise<EnsureResult> {
  const name = given.name ?? context.node?.name;
  if (name === undefined)
    throw new KcoreError({
      code: "NODE_UNKNOWN",
      message: "kubernetes.node was not told for which node",
      hint: "give name: NAME, or each: TARGET in the stage",
    });
  const { api } = await openKubeApi(given, context);
  const work: NodeWork = { given, context, api, name, target: { apiVersion: "v1", resource: "nodes", name }, dryRun };
  const node = await findPlannedNode(work);
  if (node === undefined && (given.absent || given.mayBeMissing)) return resultOf(name, undefined, false);
  if (node === undefined && !given.ready) throw unknownNode(name, api);
  if (node === undefined && dryRun) {
    context.note(`would wait until ${name} has joined`);
    return { ...resultOf(name, undefined, false), open: true };
  }
  if (node !== undefined && given.hasWork) await requireWork(work);
  return given.absent ? removeNode(work, node as KubeNode) : keepNode(work, node);
}

/** @throws KcoreError KUBERNETES_NODE_IDLE if all of the node's pods have ended, or would stay in a drain */
async function requireWork({ api, name }: NodeWork): Promise<void> {
  const { leaving } = await new NodeDrain(api, name, { deleteEmptyDirData: true, force: true }).choose();
  if (leaving.some(({ status }) => status?.phase === "Running")) return;
  throw new KcoreError(
    {
      code: "KUBERNETES_NODE_IDLE",
      message: `no pod runs on ${name} but those that run on every node`,
      hint: `kcore node uncordon ${name}, if a drain was not taken back; taints of the node and affinities of the pods`,
    },
    { exitCode: exitCodes.failed },
  );
}

function plannedKey({ context, api, name }: NodeWork): string {
  return `${context.runId} ${api.cluster.server} ${name}`;
}

/** The node, in a dry run with its planned changes; undefined: the cluster has none of this name, or the dry run deleted it. */
async function findPlannedNode(work: NodeWork): Promise<KubeNode | undefined> {
  const { api, target, dryRun } = work;
  const live = await api.find<KubeNode>(target, NodeShape);
  const before = dryRun ? (plannedChanges.get(plannedKey(work)) ?? []) : [];
  return before === "deleted" ? undefined : live && before.reduce(changedNode, live);
}

/** Deletes the node's object, after a drain if `drained` is set. */
async function removeNode(work: NodeWork, node: KubeNode): Promise<EnsureResult> {
  const { given, context, api, target, name, dryRun } = work;
  const drained = await applyMarks(work, node, {});
  const fate = await deleteObject(api, target, { propagation: "Background", dryRun });
  if (fate === "deleted") context.note(`${dryRun ? "would delete" : "deletes"} the node ${name}`);
  if (dryRun) plannedChanges.set(plannedKey(work), "deleted");
  const { signal, note } = context;
  if (!dryRun) await awaitGone(api, target, `the node ${name}`, { seconds: given.readyTimeout, signal, note });
  return resultOf(name, undefined, fate === "deleted" || drained);
}

async function keepNode(work: NodeWork, found: KubeNode | undefined): Promise<EnsureResult> {
  const { given, context, name, dryRun } = work;
  const { labels, annotations, taints, cordoned, ready } = given;
  const node = found ?? (await awaitNode(work));
  // Labels and taints come first: they may choose the pods that make a node Ready.
  let changed = await applyMarks(work, node, { labels, annotations, taints, ...(cordoned === true && { cordoned }) });
  const missing = ready ? missingOf(node, READY) : undefined;
  const open = missing !== undefined && dryRun;
  if (open) context.note(`would wait until ${name} is Ready: ${missing}`);
  else if (missing !== undefined) await waitReady(work);
  if (cordoned === false)
    changed = (await patchNode(work, (await findPlannedNode(work)) ?? node, { cordoned })) || changed;
  return { ...resultOf(name, (await findPlannedNode(work)) ?? node, changed), open };
}

/** Sets the node's labels, annotations, taints and cordon, and drains it if `drained` is set; returns whether anything changed. */
async function applyMarks(work: NodeWork, node: KubeNode, marks: WantedMarks): Promise<boolean> {
  const { given, api, name } = work;
  if (!given.drained) return patchNode(work, node, marks);
  const drain = new NodeDrain(api, name, given);
  // Before any change: `choose` throws if a pod needs the operator's permission.
  const choice = await drain.choose();
  const isChanged = await patchNode(work, node, { ...marks, cordoned: true });
  // Pods may have come to the node until it was cordoned.
  const isOld = isChanged && !work.dryRun;
  return (await evict(work, drain, isOld ? await drain.choose() : choice)) || isChanged;
}

/** Patches the node, in a dry run without storing it; returns whether there was a difference. */
async function patchNode(work: NodeWork, node: KubeNode, wanted: WantedMarks): Promise<boolean> {
  const { api, target, name, context, dryRun } = work;
  let current = node;
  for (let tries = 1; ; tries++) {
    const found = nodeChange(current, wanted);
    if (found === undefined) return false;
    try {
      await api.call(target, {
        verb: "patch",
        contentType: "application/merge-patch+json",
        query: { fieldManager, ...(dryRun && { dryRun: "All" }) },
        body: found.patch,
      });
    } catch (error) {
      if (!(error instanceof KubeRefusal) || error.status !== 409 || tries === TRIES) throw error;
      current = (await findPlannedNode(work)) ?? current;
      continue;
    }
    context.note(`${dryRun ? "would change" : "changed"} ${name}: ${found.lines.join("; ")}`);
    if (dryRun) {
      const before = plannedChanges.get(plannedKey(work)) ?? [];
      if (before !== "deleted") plannedChanges.set(plannedKey(work), [...before, found]);
    }
    return true;
  }
}

/** Evicts the pods that must leave the node; true if there were any. */
async function evict(
  { given, context, name, dryRun }: NodeWork,
  drain: NodeDrain,
  { leaving, staying }: PodChoice,
): Promise<boolean> {
  const { signal, note, warn } = context;
  if (staying.length > 0)
    note(`stay on ${name}: ${firstNames(staying.map(({ pod, why }) => `${podName(pod)} (${why})`))}`);
  if (leaving.length === 0) return false;
  note(`${dryRun ? "would evict" : "evicts"} from ${name}: ${firstNames(leaving.map(podName))}`);
  if (dryRun) {
    for (const pod of leaving) {
      const why = await drain.try(pod);
      if (why !== undefined) note(`${podName(pod)} would have to wait: ${why}`);
    }
    return true;
  }
  const warnAboutPods = (): void =>
    warn(`${name} stays cordoned: its drain was stopped with these pods left: ${firstNames(drain.remaining)}`);
  signal.addEventListener("abort", warnAboutPods, { once: true });
  try {
    await drain.finish({ seconds: given.drainTimeout, signal, note });
  } finally {
    signal.removeEventListener("abort", warnAboutPods);
  }
  note(`${name} is drained`);
  return true;
}

/** Waits until the node is in the cluster. @throws KcoreError KUBERNETES_NODE_UNKNOWN */
async function awaitNode(work: NodeWork): Promise<KubeNode> {
  const { given, context, api, name } = work;
  return pollUntil(
    async () => {
      const node = await findPlannedNode(work);
      return node ? { found: node } : { waitingFor: `${name} to join` };
    },
    () => unknownNode(name, api),
    { seconds: given.readyTimeout, signal: context.signal, note: context.note },
  );
}

async function waitReady(work: NodeWork): Promise<void> {
  const { given, context, name } = work;
  await pollUntil(
    async () => {
      const node = await findPlannedNode(work);
      const missing = node ? missingOf(node, READY) : "it is not in the cluster";
      return missing === undefined ? { found: true } : { waitingFor: `${name}: ${missing}` };
    },
    (waitingFor) =>
      new KcoreError(
        {
          code: "KUBERNETES_NOT_READY",
          message: `after ${given.readyTimeout} s ${waitingFor}`,
          hint: `kcore exec --on ${name} -- journalctl -n 30 -u kubelet`,
        },
        { exitCode: exitCodes.failed },
      ),
    { seconds: given.readyTimeout, signal: context.signal, note: context.note },
  );
}

function resultOf(name: string, node: KubeNode | undefined, changed: boolean): EnsureResult {
  const kubeletVersion = node?.status?.nodeInfo?.kubeletVersion ?? "";
  return { changed, open: false, outputs: { name, exists: node !== undefined, kubeletVersion } };
}

function unknownNode(name: string, { cluster: { server } }: KubeApi): KcoreError {
  return new KcoreError(
    {
      code: "KUBERNETES_NODE_UNKNOWN",
      message: `the cluster at ${server} has no node ${name}`,
      hint: "kubectl get nodes lists them; ready: true waits for one that is joining, mayBeMissing: true leaves it alone",
    },
    { exitCode: exitCodes.failed },
  );
}
