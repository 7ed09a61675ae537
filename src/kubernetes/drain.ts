import { exitCodes, KcoreError } from "#errors/problem.ts";
import type { KubeApi } from "./api.ts";
import { clipText, clipLines } from "./clip.ts";
import { PodShape, ResourcesShape, type Pod, type ApiResource } from "./objects.ts";
import { pollUntil, type PollResult, type PollLimits } from "./poll-until.ts";
import { KubeRefusal } from "./refusals.ts";

/** Seconds until a refused eviction is tried again. Each further refusal doubles them. */
const FIRST_PAUSE = 1;
const LONGEST_PAUSE = 10;
/** The maximum number of pods that a line names. */
const MOST_NAMES = 5;

export interface DrainOptions extends AcceptedLoss {
  /** Seconds that a pod gets to end; absent: the pod's own. */
  readonly gracePeriod?: number | undefined;
}

/** Evicts the pods of one node. */
export class NodeDrain {
  readonly #api: KubeApi;
  readonly #node: string;
  readonly #options: DrainOptions;
  /** By a pod's uid, or its name if it has none: why it was not evicted yet, and when the eviction is tried again. */
  readonly #held = new Map<string, { readonly why: string; readonly pause: number; readonly again: number }>();
  #remaining: readonly Pod[] = [];

  constructor(api: KubeApi, node: string, options: DrainOptions) {
    this.#api = api;
    this.#node = node;
    this.#options = options;
  }

  /** Names of the pods that were still to be evicted or to end in the last round. */
  get remaining(): readonly string[] {
    return this.#remaining.map(podName);
  }

  /** Chooses among the node's pods. @throws KcoreError KUBERNETES_DRAIN_REFUSED if a pod needs the operator's leave */
  async choose(): Promise<PodChoice> {
    const pods = await this.#api.list<Pod>(
      { apiVersion: "v1", resource: "pods" },
      { query: { fieldSelector: `spec.nodeName=${this.#node}` }, shape: PodShape },
    );
    const choice = choosePods(pods, this.#options);
    if (choice.unpermitted.length > 0) throw refusal(this.#node, choice);
    return choice;
  }

  /** Evicts pods until all that must leave are gone. @throws KcoreError as `choose`; KUBERNETES_DRAIN_TIMEOUT with the remaining pods' reasons */
  async finish(limits: PollLimits): Promise<void> {
    await pollUntil(
      () => this.#round(),
      () => this.#tooLate(limits.seconds),
      limits,
    );
  }

  /** Asks whether the pod may be evicted, without doing it; returns the obstacle, if there is one. */
  async try(pod: Pod): Promise<string | undefined> {
    return this.#evict(pod, { dryRun: ["All"] });
  }

  async #round(): Promise<PollResult<true>> {
    const { leaving } = await this.choose();
    this.#remaining = leaving;
    if (leaving.length === 0) return { found: true };
    for (const pod of leaving) {
      const { deletionTimestamp } = pod.metadata;
      const key = keyOf(pod);
      const held = this.#held.get(key);
      if (deletionTimestamp !== undefined || (held && performance.now() < held.again)) continue;
      const why = await this.#evict(pod);
      const pause = held ? Math.min(held.pause * 2, LONGEST_PAUSE) : FIRST_PAUSE;
      if (why === undefined) this.#held.delete(key);
      else this.#held.set(key, { why, pause, again: performance.now() + pause * 1000 });
    }
    return { waitingFor: this.#waitingFor() };
  }

  /** Evicts a pod; returns the obstacle, or undefined if the pod is leaving or gone. */
  async #evict(pod: Pod, deleteOptions: Readonly<Record<string, unknown>> = {}): Promise<string | undefined> {
    const { gracePeriod } = this.#options;
    const { name, namespace = "default", uid } = pod.metadata;
    try {
      await this.#api.call(
        { apiVersion: "v1", resource: "pods", namespace, name, subresource: "eviction" },
        {
          verb: "create",
          body: {
            apiVersion: await this.#evictionVersion(),
            kind: "Eviction",
            metadata: { name, namespace },
            deleteOptions: {
              // A pod of the same name that started meanwhile is another pod.
              preconditions: { uid },
              ...(gracePeriod !== undefined && { gracePeriodSeconds: gracePeriod }),
              ...deleteOptions,
            },
          },
        },
      );
      return undefined;
    } catch (error) {
      if (!(error instanceof KubeRefusal)) throw error;
      if (error.status === 404 || error.status === 409) return undefined;
      const isGoing = error.causes.some(({ reason }) => reason === "NamespaceTerminating");
      if (error.status < 500 && error.status !== 429 && !isGoing) throw error;
      // 429: the budget allows no disruption now (causes name it), or the server is overloaded. 500: two budgets for one pod.
      const causes = error.causes.map(({ message }) => message).filter((message) => message !== "");
      return clipText(causes.join("; ") || error.answer.message);
    }
  }

  #version: Promise<string> | undefined;

  /** policy/v1 since 1.22; policy/v1beta1 is gone since 1.25. */
  #evictionVersion(): Promise<string> {
    this.#version ??= this.#api
      .read<{ readonly resources: readonly ApiResource[] }>("/api/v1", ResourcesShape)
      .then(({ resources }) => {
        const { group = "policy", version = "v1" } = resources.find(({ name }) => name === "pods/eviction") ?? {};
        return `${group}/${version}`;
      });
    this.#version.catch(() => (this.#version = undefined));
    return this.#version;
  }

  #waitingFor(): string {
    const held = this.#remaining.filter((pod) => this.#held.has(keyOf(pod)));
    const going = this.#remaining.filter((pod) => !held.includes(pod));
    const parts = [
      ...held.slice(0, MOST_NAMES).map((pod) => `${podName(pod)}: ${this.#why(pod)}`),
      ...(held.length > MOST_NAMES ? [`and ${held.length - MOST_NAMES} more pods that may not go yet`] : []),
      ...(going.length > 0 ? [`${firstNames(going.map(podName))} to end`] : []),
    ];
    return parts.join("; ");
  }

  #why(pod: Pod): string {
    const { deletionTimestamp } = pod.metadata;
    if (deletionTimestamp !== undefined) return `is being deleted since ${deletionTimestamp}; does its kubelet run?`;
    return this.#held.get(keyOf(pod))?.why ?? "was evicted and has not ended";
  }

  #tooLate(seconds: number): KcoreError {
    const count = this.#remaining.length;
    return new KcoreError(
      {
        code: "KUBERNETES_DRAIN_TIMEOUT",
        message: `${this.#node} is not drained after ${seconds} s: ${count === 1 ? "one pod is" : `${count} pods are`} left`,
        detail: clipLines(this.#remaining.map((pod) => `${podName(pod)}: ${this.#why(pod)}`)),
        hint: `${this.#node} stays cordoned; mend what holds the pods up and run again, or give it more time: drainTimeout`,
      },
      { exitCode: exitCodes.failed },
    );
  }
}

function keyOf(pod: Pod): string {
  return pod.metadata.uid ?? podName(pod);
}

function refusal(node: string, { unpermitted: pods }: PodChoice): KcoreError {
  const leaves = [...new Set(pods.map(({ leave }) => leave))];
  return new KcoreError(
    {
      code: "KUBERNETES_DRAIN_REFUSED",
      message: `${node} cannot be drained without losing something`,
      detail: clipLines(pods.map(({ pod, why }) => `${podName(pod)}: ${why}`)),
      hint: `move these pods, or give leave: ${leaves.map((leave) => `${leave}: true`).join(", ")}`,
    },
    { exitCode: exitCodes.failed },
  );
}

/** The first names, and how many more there are. */
export function firstNames(names: readonly string[]): string {
  const more = names.length - MOST_NAMES;
  return `${names.slice(0, MOST_NAMES).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

/** kubectl's names for the losses that an operator accepts. */
interface AcceptedLoss {
  readonly deleteEmptyDirData: boolean;
  readonly force: boolean;
}

/** The effect of a drain on the pods of a node. */
export interface PodChoice {
  /** Pods to evict. */
  readonly leaving: readonly Pod[];
  /** Pods that stay, each with the reason. */
  readonly staying: readonly { readonly pod: Pod; readonly why: string }[];
  /** Pods that need the operator's leave. While there is one, no pod is evicted. */
  readonly unpermitted: readonly { readonly pod: Pod; readonly why: string; readonly leave: keyof AcceptedLoss }[];
}

/** The annotation of a static pod's mirror: the kubelet reads such a pod from a file and starts it again after each deletion. */
const MIRROR = "kubernetes.io/config.mirror";

/** Chooses as `kubectl drain --ignore-daemonsets` does, except that ended pods of a DaemonSet stay. */
export function choosePods(pods: readonly Pod[], { deleteEmptyDirData, force }: AcceptedLoss): PodChoice {
  const leaving: Pod[] = [];
  const staying: { pod: Pod; why: string }[] = [];
  const unpermitted: { pod: Pod; why: string; leave: keyof AcceptedLoss }[] = [];
  for (const pod of pods) {
    const owner = pod.metadata.ownerReferences?.find(({ controller }) => controller === true);
    if (pod.metadata.annotations?.[MIRROR] !== undefined) staying.push({ pod, why: "a static pod's mirror" });
    else if (owner?.kind === "DaemonSet") staying.push({ pod, why: `of the DaemonSet ${owner.name}` });
    else {
      const isOver = pod.status?.phase === "Succeeded" || pod.status?.phase === "Failed";
      const emptyDirs = pod.spec?.volumes?.filter(({ emptyDir }) => emptyDir !== undefined) ?? [];
      // A pod that has ended or is being deleted needs no permission.
      const isFree = isOver || pod.metadata.deletionTimestamp !== undefined;
      if (!isFree && !force && owner === undefined)
        unpermitted.push({ pod, leave: "force", why: "no controller would start it elsewhere" });
      else if (!isFree && !deleteEmptyDirData && emptyDirs.length > 0) {
        const names = clipText(emptyDirs.map(({ name }) => name).join(", "));
        unpermitted.push({
          pod,
          leave: "deleteEmptyDirData",
          why: `the contents of its emptyDir (${names}) would be lost`,
        });
      } else leaving.push(pod);
    }
  }
  return { leaving, staying, unpermitted };
}

/** `NAMESPACE/NAME`. */
export function podName({ metadata: { namespace = "default", name } }: Pod): string {
  return `${namespace}/${name}`;
}
