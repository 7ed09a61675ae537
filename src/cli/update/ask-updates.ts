import type { QuestionOptions } from "#api/ask.ts";
import { ApiRefusal, type ApiClient } from "#api/client.ts";
import type { UpdateView } from "#api/update-schemas.ts";
import type { ErrorCode } from "#errors/codes.ts";
import { exitCodes, KcoreError } from "#errors/problem.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { runTasks } from "#base/tasks.ts";
import { readManifestFiles } from "#manifests/read-manifest-files.ts";
import type { Cluster } from "../cluster/open-cluster.ts";
import { withProjectDrain } from "./project-drain.ts";
import type { Manifest } from "#manifests/read-manifests.ts";

const updateCodes = [
  "UPDATE_BLOCKED",
  "UPDATE_ENDED",
  "UPDATE_NOT_ASKED",
  "UPDATE_OWNED",
  "UPDATE_PLAN_CHANGED",
  "UPDATE_UNKNOWN",
  "UPDATE_UNSIGNED",
] as const satisfies readonly ErrorCode[];

/**
 * Asks a controller about updates. A refusal that concerns the update has an error code of its own, since the controller is not at fault.
 * @throws KcoreError as Controllers.ask does, and with the codes of updates
 */
export async function askUpdates<Answer>(
  { ask }: Pick<Cluster, "ask">,
  work: (client: ApiClient) => Promise<Answer>,
  options?: QuestionOptions,
): Promise<Answer> {
  try {
    return await ask(work, options);
  } catch (error) {
    throw asUpdateError(error);
  }
}

function asUpdateError(error: unknown): unknown {
  const code = error instanceof ApiRefusal ? updateCodes.find((name) => name === error.reason) : undefined;
  if (!(error instanceof ApiRefusal) || code === undefined) return error;
  const { message, hint, detail } = error.refusal;
  const exitCode = code === "UPDATE_UNKNOWN" ? exitCodes.usage : exitCodes.failed;
  return new KcoreError({ code, message, ...omitUndefined({ hint, detail }) }, { cause: error, exitCode });
}

/** The update as the first controller that answers knows it. @throws KcoreError UPDATE_UNKNOWN */
export function getUpdate(cluster: Pick<Cluster, "ask">, name: string): Promise<UpdateView> {
  return askUpdates(cluster, (client) => callForUpdate(client, name));
}

/**
 * The update as this controller knows it. An answer about another update is refused, since an operator may approve the
 * answer next.
 * @throws ApiRefusal
 */
export async function callForUpdate(client: ApiClient, name: string): Promise<UpdateView> {
  const view = await client.call("getUpdate", {}, { id: name });
  if (view.name === name) return view;
  throw new ApiRefusal(client.endpoint, 200, {
    code: "ANSWER_INVALID",
    message: `its answer is about the update “${view.name}”, not “${name}”`,
  });
}

/** As {@link getUpdate}, but undefined for an unknown update. */
export async function findUpdate(cluster: Pick<Cluster, "ask">, name: string): Promise<UpdateView | undefined> {
  try {
    return await getUpdate(cluster, name);
  } catch (error) {
    if (error instanceof KcoreError && error.problems[0]?.code === "UPDATE_UNKNOWN") return undefined;
    throw error;
  }
}

export type UpdateManifest = Extract<Manifest, { kind: "ClusterUpdate" }>;

/** The flag that names updates by their manifests. */
export interface NameFlags {
  readonly filename?: readonly string[] | undefined;
}

/** The updates of files, `-` for standard input, with the drain of the project. @throws KcoreError USAGE, and the problems of the manifests and of kcore.yaml */
export async function readUpdateManifests(
  files: readonly string[],
  project: string | undefined,
): Promise<readonly UpdateManifest[]> {
  const manifests = await readManifestFiles(files, runTasks);
  return manifests.map((manifest) => {
    if (manifest.kind === "ClusterUpdate") return withProjectDrain(manifest, project);
    throw new KcoreError({
      code: "USAGE",
      message: `a ${manifest.kind} is no ClusterUpdate`,
      at: manifest.at,
      hint: "kcore apply -f FILE takes manifests of every kind",
    });
  });
}

/** The name of the only update that a command names. @throws KcoreError USAGE for none or several */
export async function updateNameOf(name: string | undefined, { filename = [] }: NameFlags): Promise<string> {
  const named = name === undefined ? [] : [name];
  const all = [
    ...named,
    ...(filename.length > 0 ? (await readUpdateManifests(filename, undefined)).map((update) => update.name) : []),
  ];
  const [only] = all;
  if (only !== undefined && all.length === 1) return only;
  throw new KcoreError({
    code: "USAGE",
    message: all.length === 0 ? "no update is named" : `${all.length} updates are named, and one is wanted`,
    hint: "its name, or -f FILE with its manifest; kcore update cluster list tells them",
  });
}
