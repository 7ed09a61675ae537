import { exitCodes, KcoreError } from "#errors/problem.ts";
import type { KubeApi } from "./api.ts";
import { clip } from "./clip.ts";
import { manager, type Target } from "./target.ts";
import { missingOf, type Awaited } from "./conditions.ts";
import { differences } from "./difference.ts";
import { isSecret, type Wanted } from "./manifests.ts";
import { ObjectShape, titleOf, type KubeObject } from "./objects.ts";
import { pollUntil, type Limits } from "./poll-until.ts";

/** How objects that depend on a deleted object are deleted. */
export type Propagation = "Background" | "Foreground" | "Orphan";

/** The effect of an apply on one object. */
export type Comparison =
  { readonly fate: "unchanged" | "new" } | { readonly fate: "differs"; readonly lines: readonly string[] };

/** Times that an object is compared anew because another client wrote it meanwhile. */
const TRIES = 5;

interface ApplyOptions {
  readonly dryRun: boolean;
  /** Takes fields over that another manager set otherwise. */
  readonly force: boolean;
}

/** Writes an object by server-side apply. @throws KubeRefusal; KUBERNETES_CONFLICT if other managers own fields that differ */
export function applyObject(
  api: KubeApi,
  target: Target,
  object: KubeObject,
  { dryRun, force }: ApplyOptions,
): Promise<KubeObject> {
  return api.call<KubeObject>(target, {
    shape: ObjectShape,
    verb: "patch",
    contentType: "application/apply-patch+yaml",
    query: {
      fieldManager: manager,
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
  target: Target,
  { object, secrets }: Wanted,
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
    (isSecret(object) && path[0] === "data") || [...secrets].some((given) => isAbove(path, given, object));
  const lines = differences(live, next, isHidden);
  return lines.length === 0 ? { fate: "unchanged" } : { fate: "differs", lines };
}

/** Whether a difference at `path` could show a value that was given as a secret: lists may have been reordered. */
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

/** Deletes an object. `none`: there is none; `going`: it is being deleted already. */
export async function deleteObject(
  api: KubeApi,
  target: Target,
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

/** Waits until an object is gone, or another one has its name. @throws KcoreError KUBERNETES_NOT_READY */
export async function awaitGone(api: KubeApi, target: Target, title: string, limits: Limits): Promise<void> {
  let uid: string | undefined;
  await pollUntil(
    async () => {
      const live = await api.find<KubeObject>(target, ObjectShape);
      if (live === undefined || (uid !== undefined && live.metadata.uid !== uid)) return { found: true };
      ({ uid } = live.metadata);
      const { finalizers = [] } = live.metadata;
      const held = finalizers.length > 0 ? clip(`, held by its finalizers ${finalizers.join(", ")}`) : "";
      return { waitingFor: `${title} is still there${held}` };
    },
    (waitingFor) => notReady(`after ${limits.seconds} s ${waitingFor}`, "wait longer: wait: { timeout: … }"),
    limits,
  );
}

/** Waits until the object meets the condition. @throws KcoreError KUBERNETES_NOT_READY */
export async function awaitObject(api: KubeApi, target: Target, awaited: Awaited, limits: Limits): Promise<void> {
  await pollUntil(
    async () => {
      const live = await api.find<KubeObject>(target, ObjectShape);
      if (live === undefined) return { waitingFor: `${target.resource} ${target.name ?? ""} is not there any more` };
      const missing = missingOf(live, awaited);
      return missing === undefined ? { found: true } : { waitingFor: `${titleOf(live)}: ${missing}` };
    },
    (waitingFor) => notReady(`after ${limits.seconds} s ${waitingFor}`, "look at it: kubectl describe; or wait longer"),
    limits,
  );
}

function notReady(message: string, hint: string): KcoreError {
  return new KcoreError({ code: "KUBERNETES_NOT_READY", message, hint }, { exitCode: exitCodes.failed });
}
