import { z } from "zod";
import { openTemplates } from "#engine/expressions/template.ts";
import { type ActionContext, defineAction } from "#engine/orchestrate/action.ts";
import { findIn, foldersOf } from "#engine/project/folders.ts";
import { shippedRoot } from "#engine/project/shipped.ts";
import { Duration } from "#engine/step/fields.ts";
import { Secret } from "#engine/step/secret.ts";
import { readBytes } from "#engine/yaml/regular-file.ts";
import { KcoreError } from "#errors/problem.ts";
import type { KubeApi } from "#kubernetes/api.ts";
import { PathPart, type ApiTarget } from "#kubernetes/target.ts";
import { applyObject, awaitGone, awaitObject, compareObject, deleteObject } from "#kubernetes/apply.ts";
import { missingOf, type WaitCondition } from "#kubernetes/conditions.ts";
import { ObjectManifest, readObjects, wantedObject, type WantedObject } from "#kubernetes/manifests.ts";
import { ObjectShape, objectTitle, type KubeObject } from "#kubernetes/objects.ts";
import { pollUntil } from "#kubernetes/poll-until.ts";
import { Resources } from "#kubernetes/resources.ts";
import { clusterArgs, openKubeApi, runAndPlan, type EnsureResult } from "./kubernetes-cluster.ts";

/** The default limit, in seconds, for a condition, or until an object is gone. */
const WAIT_LIMIT = 300;
/** The limit, in seconds, until the API knows a kind whose definition was just applied. */
const DEFINITION_LIMIT = 30;

const Wait = z
  .strictObject({
    condition: z.string().min(1).optional().describe("A condition of the status: Available, Ready, Established."),
    status: z.string().min(1).default("True").describe("The condition's status that is waited for."),
    field: z
      .string()
      .regex(/^[^.\s]+(\.[^.\s]+)*$/, "must be keys with dots between: status.phase")
      .optional()
      .describe("A field in place of a condition, keys with dots between: status.phase; list items by index from 0."),
    value: z
      .union([z.string(), z.number(), z.boolean()])
      .optional()
      .describe("The field's value; unless given, the field must be there and not empty."),
    timeout: Duration.default(WAIT_LIMIT).describe("Time to wait, such as 2m; also until an absent object is gone."),
  })
  .refine(({ condition, field }) => condition === undefined || field === undefined, "takes a condition or a field")
  .refine(({ field, value }) => field !== undefined || value === undefined, "value is a field's");

const args = z
  .strictObject({
    ...clusterArgs,
    namespace: PathPart.optional().describe("The namespace of objects that name none; the context's unless given."),
    manifest: z
      .union([ObjectManifest, z.array(ObjectManifest).min(1), z.string().min(1), z.instanceof(Secret)])
      .optional()
      .describe("An object, a list of objects, or a text with YAML documents."),
    file: z.string().min(1).optional().describe("A file of the project with YAML documents."),
    template: z.string().min(1).optional().describe("A template below templates/ that makes YAML documents."),
    vars: z.record(z.string(), z.unknown()).default({}).describe("The only names that the template sees."),
    absent: z.boolean().default(false).describe("Deletes the objects and waits until they are gone."),
    propagation: z
      .enum(["Background", "Foreground", "Orphan"])
      .default("Background")
      .describe("How objects that depend on a deleted one go."),
    force: z.boolean().default(false).describe("Takes fields over that another field manager set otherwise."),
    wait: Wait.optional().describe("The condition to wait for once each object is as given."),
  })
  .refine(
    ({ manifest, file, template }) => [manifest, file, template].filter((each) => each !== undefined).length === 1,
    "needs one of manifest, file and template",
  )
  .refine(
    ({ absent, wait }) => !absent || (wait?.condition === undefined && wait?.field === undefined),
    "an absent object has no condition to wait for; wait: { timeout } is how long it may take to go",
  );
type Args = z.output<typeof args>;

/**
 * Objects of a Kubernetes cluster, as given or absent, by server-side apply with the field manager `kcore`.
 * ```yaml
 * - { id: tools, run: kubernetes.object, kubeconfig: /etc/kubernetes/admin.conf, file: manifests/tools.yaml, wait: { condition: Available } }
 * ```
 */
export const kubernetesObject = defineAction({
  name: "kubernetes.object",
  summary: "Keeps objects of a Kubernetes cluster as given, or absent.",
  outputs: ["objects"],
  bastionNames: ["kubeconfig", "file", "template"],
  args,
  ...runAndPlan(ensure),
});

/** The outcome of the objects so far. */
interface ApplyProgress {
  changed: boolean;
  /** Whether a dry run cannot know the result, since it cannot know how a wait would end. */
  open: boolean;
  /** Objects that this run created, or would create: other objects can depend on them, in later stages too. */
  readonly fresh: KubeObject[];
}

/** The objects that a run created, or would create, by run and cluster. */
const created = new Map<string, KubeObject[]>();

function createdBy({ runId }: ActionContext, { cluster: { server } }: KubeApi): KubeObject[] {
  const key = `${runId} ${server}`;
  const present = created.get(key) ?? [];
  created.set(key, present);
  return present;
}

async function ensure(given: Args, context: ActionContext, dryRun: boolean): Promise<EnsureResult> {
  const wanted = manifestsOf(given, context);
  if (wanted.length === 0) throw new KcoreError({ code: "MANIFEST_EMPTY", message: "the manifest has no object" });
  const { api, namespace } = await openKubeApi(given, context);
  const place = { api, resources: new Resources(api), namespace: given.namespace ?? namespace };
  const progress: ApplyProgress = { changed: false, open: false, fresh: createdBy(context, api) };
  const work = given.absent ? remove : apply;
  const targets = new Map<WantedObject, ApiTarget | undefined>();
  // Later objects depend on earlier ones, so they are deleted first.
  for (const each of given.absent ? wanted.toReversed() : wanted)
    targets.set(each, await work(each, given, context, { ...place, dryRun, progress }));
  const objects = wanted.map((each) => {
    const { apiVersion, kind, metadata } = each.object;
    const { namespace } = targets.get(each) ?? metadata;
    return { apiVersion, kind, name: metadata.name, ...(namespace !== undefined && { namespace }) };
  });
  const { changed, open } = progress;
  return { changed, open, outputs: { objects } };
}

interface ApplyContext {
  readonly dryRun: boolean;
  readonly api: KubeApi;
  readonly resources: Resources;
  readonly namespace: string;
  readonly progress: ApplyProgress;
}

/** Applies an object and waits for its condition; returns its target, or undefined if the cluster does not know its kind yet. */
async function apply(
  wanted: WantedObject,
  { force, wait }: Args,
  context: ActionContext,
  place: ApplyContext,
): Promise<ApiTarget | undefined> {
  const { api, progress, dryRun } = place;
  const { note, signal } = context;
  const { object } = wanted;
  const definition = progress.fresh.find((fresh) => defines(fresh, object));
  const target = await (definition
    ? awaitDefinition(object, context, place)
    : place.resources.targetOf(object, place.namespace));
  const before = definition ?? progress.fresh.find((fresh) => isNamespace(fresh, target?.namespace));
  if (target === undefined || (dryRun && before !== undefined)) {
    progress.changed = true;
    progress.fresh.push(object);
    note(`would create ${titleIn(object, target)}${before ? ` (after ${objectTitle(before)})` : ""}`);
    return target;
  }
  const title = titleIn(object, target);
  const compared = await compareObject(api, target, wanted, { force });
  if (compared.fate !== "unchanged") {
    progress.changed = true;
    if (compared.fate === "new") progress.fresh.push(object);
    const verb = compared.fate === "new" ? (dryRun ? "would create" : "creates") : dryRun ? "would change" : "changes";
    note(`${verb} ${title}`);
    if (compared.fate === "differs") for (const line of compared.lines) note(`  ${line}`);
    if (!dryRun) await applyObject(api, target, object, { dryRun, force });
  }
  const awaited = wait && waitConditionOf(wait);
  if (awaited === undefined) return target;
  if (!dryRun) {
    await awaitObject(api, target, awaited, { seconds: wait?.timeout ?? WAIT_LIMIT, signal, note });
    return target;
  }
  const live = await api.find<KubeObject>(target, ObjectShape);
  const missing = live ? missingOf(live, awaited) : "it is not there yet";
  if (missing === undefined && compared.fate === "unchanged") return target;
  progress.open = true;
  note(`would wait for ${title}${missing === undefined ? "" : `: ${missing}`}`);
  return target;
}

/** Deletes an object and waits for its end; returns its target, or undefined if the cluster does not know its kind. */
async function remove(
  { object }: WantedObject,
  { propagation, wait }: Args,
  { note, signal }: ActionContext,
  { api, resources, namespace, progress, dryRun }: ApplyContext,
): Promise<ApiTarget | undefined> {
  const target = await resources.targetOf(object, namespace).catch((error: unknown) => {
    // A kind that the cluster does not have has no objects.
    if (isKindUnknown(error)) return undefined;
    throw error;
  });
  if (target === undefined) return undefined;
  const title = titleIn(object, target);
  const fate = await deleteObject(api, target, { propagation, dryRun });
  if (fate === "deleted") note(`${dryRun ? "would delete" : "deletes"} ${title}`);
  progress.changed ||= fate === "deleted";
  progress.open ||= fate === "going";
  if (fate !== "none" && !dryRun)
    await awaitGone(api, target, title, { seconds: wait?.timeout ?? WAIT_LIMIT, signal, note });
  return target;
}

/** Whether the first object is the definition of the second one's kind. */
function defines({ kind, ...fresh }: KubeObject, object: KubeObject): boolean {
  if (kind !== "CustomResourceDefinition") return false;
  const spec = fresh["spec"] as { group?: string; names?: { kind?: string } } | undefined;
  return spec?.group === object.apiVersion.split("/")[0] && spec?.names?.kind === object.kind;
}

function isNamespace({ kind, metadata }: KubeObject, namespace: string | undefined): boolean {
  return kind === "Namespace" && metadata.name === namespace;
}

/** Waits until the API knows the kind of the object, whose definition was just created; returns its target, in a dry run undefined. */
async function awaitDefinition(
  object: KubeObject,
  { signal, note }: ActionContext,
  { resources, namespace, dryRun }: ApplyContext,
): Promise<ApiTarget | undefined> {
  if (dryRun) return undefined;
  let last: unknown;
  return pollUntil(
    async () => {
      try {
        return { found: await resources.targetOf(object, namespace) };
      } catch (error) {
        if (!isKindUnknown(error)) throw error;
        last = error;
        return { waitingFor: `the cluster to know ${object.kind}` };
      }
    },
    () => last as Error,
    { seconds: DEFINITION_LIMIT, signal, note },
  );
}

function isKindUnknown(error: unknown): boolean {
  return error instanceof KcoreError && error.problems[0]?.code === "KUBERNETES_KIND_UNKNOWN";
}

function titleIn({ kind, metadata }: KubeObject, target: ApiTarget | undefined): string {
  const { namespace, name } = target ?? metadata;
  return objectTitle({
    kind,
    metadata: { name: name ?? metadata.name, ...(namespace !== undefined && { namespace }) },
  });
}

function waitConditionOf({ condition, status, field, value }: z.output<typeof Wait>): WaitCondition | undefined {
  if (condition !== undefined) return { condition, status };
  return field === undefined ? undefined : { field, value };
}

/** The objects of the manifest, file or template. @throws KcoreError at their places */
function manifestsOf(
  { manifest, file, template, vars }: Args,
  { project, trust }: ActionContext,
): readonly WantedObject[] {
  const places = { project, shipped: shippedRoot(), ...(trust && { trust }) };
  if (template !== undefined) {
    const text = openTemplates(foldersOf("templates", places)).render(template, vars);
    const name = `the output of templates/${template}`;
    if (!(text instanceof Secret)) return readObjects(name, text);
    // The place of the secret among its values is unknown here.
    return readObjects(name, text.reveal(), { conceal: true }).map((each) => ({ ...each, secrets: new Set(["[]"]) }));
  }
  if (file !== undefined) return readObjects(file, readProjectFile(file, places));
  if (manifest instanceof Secret) return readObjects("the manifest", manifest.reveal(), { conceal: true });
  if (typeof manifest === "string") return readObjects("the manifest", manifest);
  return (Array.isArray(manifest) ? manifest : [manifest]).map(wantedObject);
}

function readProjectFile(file: string, places: Parameters<typeof foldersOf>[1]): Buffer {
  const [folder] = foldersOf(".", places);
  const found = folder && findIn([folder], file);
  if (found === undefined)
    throw new KcoreError({ code: "FILE_UNREADABLE", message: `the project has no file ${file}` });
  return readBytes(found.path, { name: found.shown, ...(found.folder.check && { check: found.folder.check }) });
}
