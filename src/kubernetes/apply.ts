import { exitCodes, KcoreError } from "#errors/problem.ts";
import type { KubeApi } from "./api.ts";
import { clipText } from "./clip.ts";
import { fieldManager, type ApiTarget } from "./target.ts";
import { missingOf, type WaitCondition } from "./conditions.ts";
import { differences } from "./difference.ts";
import { isSecretObject, type WantedObject } from "./manifests.ts";
import { ObjectShape, objectTitle, type KubeObject } from "./objects.ts";
import { pollUntil, type PollLimits } from "./poll-until.ts";

/** How the API server deletes objects that depend on a deleted object. */
export type Propagation = "Background" | "Foreground" | "Orphan";

/** The effect that an apply would have on one object. */
export type Comparison =
  { readonly fate: "unchanged" | "new" } | { readonly fate: "differs"; readonly lines: readonly string[] };

/** The maximum number of comparisons of an object that other clients write meanwhile. */
const TRIES = 5;

interface ApplyOptions {
  readonly dryRun: boolean;
  /** Whether to take over fields that another field manager set otherwise. */
  readonly force: boolean;
}

/** Writes an object by server-side apply. @throws KubeRefusal; KUBERNETES_CONFLICT if other managers own fields that differ */
export function applyObject(
  api: KubeApi,
  target: ApiTarget,
  object: KubeObject,
  { dryRun, force }: ApplyOptions,
): Promise<KubeObject> {
  return api.call<KubeObject>(target, {
    shape: ObjectShape,
    verb: "patch",
    contentType: "application/apply-patch+yaml",
    query: {
      fieldManager,
      force: String(force),
      // Servers before 1.25 ignore this parameter and drop unknown fields silently.
      fieldValidation: "Strict",
      ...(dryRun && { dryRun: "All" }),
    },
    body: object,
  });
}

/** Asks the server for the effect of an apply. */
export async function compareObject(
  api: KubeApi,
  target: ApiTarget,
  { object, secrets }: WantedObject,
  { force }: Pick<ApplyOptions, "force">,
): Promise<Comparison> {
  let live: KubeObject | undefined;
  let next: KubeObject;
  let tries = 0;
  // Both objects must be of one version: a write of another client in between would be taken for a change.
  do {
    live = await api.find<KubeObject>(target, ObjectShape);
    next = await applyObject(api, target, object, { dryRun: true, force });
  } while (live && live.metadata.resourceVersion !== next.metadata.resourceVersion && ++tries < TRIES);
  if (live === undefined) return { fate: "new" };
  const isHidden = (path: readonly string[]): boolean =>
    (isSecretObject(object) && path[0] === "data") || [...secrets].some((given) => isAbove(path, given, object));
  const lines = differences(live, next, isHidden);
  return lines.length === 0 ? { fate: "unchanged" } : { fate: "differs", lines };
}

/** Whether a difference at `path` could show the secret at the path `given`. Lists may have been reordered, so any index is taken for any other. */
function isAbove(path: readonly string[], given: string, object: KubeObject): boolean {
  const steps = JSON.parse(given) as readonly string[];
  let value: unknown = object;
  return steps.every((step, index) => {
    const key = path[index];
    const isSame = key === undefined || Array.isArray(value) || key === step;
    value = (value as Record<string, unknown> | undefined)?.[step];
    return isSame;
  });
}

/** Deletes an object, without waiting for its end. `none`: it does not exist; `going`: its deletion had begun before. */
export async function deleteObject(
  api: KubeApi,
  target: ApiTarget,
  { propagation, dryRun }: { readonly propagation: Propagation; readonly dryRun: boolean },
): Promise<"none" | "going" | "deleted"> {
  const live = await api.find<KubeObject>(target, ObjectShape);
  if (live === undefined) return "none";
  if (live.metadata.deletionTimestamp !== undefined) return "going";
  await api.call(target, {
    verb: "delete",
    body: {
      apiVersion: "v1",
      kind: "DeleteOptions",
      propagationPolicy: propagation,
      preconditions: { uid: live.metadata.uid },
      ...(dryRun && { dryRun: ["All"] }),
    },
  });
  return "deleted";
}

/** Waits until an object is gone, or another object has its name. @throws KcoreError KUBERNETES_NOT_READY */
export async function awaitGone(api: KubeApi, target: ApiTarget, title: string, limits: PollLimits): Promise<void> {
  let uid: string | undefined;
  await pollUntil(
    async () => {
      const live = await api.find<KubeObject>(target, ObjectShape);
      if (live === undefined || (uid !== undefined && live.metadata.uid !== uid)) return { found: true };
      ({ uid } = live.metadata);
      const { finalizers = [] } = live.metadata;
      const held = finalizers.length > 0 ? clipText(`, held by its finalizers ${finalizers.join(", ")}`) : "";
      return { waitingFor: `${title} is still there${held}` };
    },
    (waitingFor) => notReady(`after ${limits.seconds} s ${waitingFor}`, "wait longer: wait.timeout or readyTimeout"),
    limits,
  );
}

/** Waits until the object meets the condition. @throws KcoreError KUBERNETES_NOT_READY */
export async function awaitObject(
  api: KubeApi,
  target: ApiTarget,
  awaited: WaitCondition,
  limits: PollLimits,
): Promise<void> {
  await pollUntil(
    async () => {
      const live = await api.find<KubeObject>(target, ObjectShape);
      if (live === undefined) return { waitingFor: `${target.resource} ${target.name ?? ""} is not there any more` };
      const missing = missingOf(live, awaited);
      return missing === undefined ? { found: true } : { waitingFor: `${objectTitle(live)}: ${missing}` };
    },
    (waitingFor) => notReady(`after ${limits.seconds} s ${waitingFor}`, "look at it: kubectl describe; or wait longer"),
    limits,
  );
}

function notReady(message: string, hint: string): KcoreError {
  return new KcoreError({ code: "KUBERNETES_NOT_READY", message, hint }, { exitCode: exitCodes.failed });
}
