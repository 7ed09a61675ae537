import { clip } from "./clip.ts";
import type { Pod } from "./objects.ts";

/** kubectl's names for the losses that an operator accepts. */
export interface DrainLeave {
  readonly deleteEmptyDirData: boolean;
  readonly force: boolean;
}

/** The effect of a drain on the pods of a node. */
export interface PodChoice {
  readonly evicted: readonly Pod[];
  /** Pods that stay, each with the reason. */
  readonly left: readonly { readonly pod: Pod; readonly why: string }[];
  /** Pods that need the operator's leave: nothing is evicted as long as there is one. */
  readonly refused: readonly { readonly pod: Pod; readonly why: string; readonly leave: keyof DrainLeave }[];
}

/** A mirror of a static pod, which the kubelet reads from a file and starts again after each deletion. */
const MIRROR = "kubernetes.io/config.mirror";

/** Chooses as kubectl drain does with --ignore-daemonsets. */
export function choosePods(pods: readonly Pod[], { deleteEmptyDirData, force }: DrainLeave): PodChoice {
  const evicted: Pod[] = [];
  const left: { pod: Pod; why: string }[] = [];
  const refused: { pod: Pod; why: string; leave: keyof DrainLeave }[] = [];
  for (const pod of pods) {
    const owner = pod.metadata.ownerReferences?.find(({ controller }) => controller === true);
    if (pod.metadata.annotations?.[MIRROR] !== undefined) left.push({ pod, why: "a static pod's mirror" });
    else if (owner?.kind === "DaemonSet") left.push({ pod, why: `of the DaemonSet ${owner.name}` });
    else {
      const isOver = pod.status?.phase === "Succeeded" || pod.status?.phase === "Failed";
      const emptyDirs = pod.spec?.volumes?.filter(({ emptyDir }) => emptyDir !== undefined) ?? [];
      // A pod that is going already needs no leave.
      const isFree = isOver || pod.metadata.deletionTimestamp !== undefined;
      if (!isFree && !force && owner === undefined)
        refused.push({ pod, leave: "force", why: "no controller would start it elsewhere" });
      else if (!isFree && !deleteEmptyDirData && emptyDirs.length > 0) {
        const names = clip(emptyDirs.map(({ name }) => name).join(", "));
        refused.push({ pod, leave: "deleteEmptyDirData", why: `what is in its emptyDir (${names}) would be lost` });
      } else evicted.push(pod);
    }
  }
  return { evicted, left, refused };
}

/** `web/a`. */
export function podName({ metadata: { namespace = "default", name } }: Pod): string {
  return `${namespace}/${name}`;
}
