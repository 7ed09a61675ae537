import { KcoreError } from "#errors/problem.ts";
import type { Manifest } from "../manifests/read-manifests.ts";
import { readFiles } from "../apply/read-files.ts";

export type UpdateManifest = Extract<Manifest, { kind: "ClusterUpdate" }>;

/** How an update is named: by its name, or by the manifest that it came from. */
export interface NameFlags {
  readonly filename?: readonly string[];
}

/** The updates of files, `-` for what comes in. @throws KcoreError USAGE, and what is wrong with the manifests */
export async function readUpdates(files: readonly string[]): Promise<readonly UpdateManifest[]> {
  const manifests = await readFiles(files);
  return manifests.map((manifest) => {
    if (manifest.kind === "ClusterUpdate") return manifest;
    throw new KcoreError({
      code: "USAGE",
      message: `a ${manifest.kind} is no ClusterUpdate`,
      at: manifest.at,
      hint: "kcore apply -f FILE takes manifests of every kind",
    });
  });
}

/** The one update that a command is about. @throws KcoreError USAGE */
export async function nameOf(name: string | undefined, { filename = [] }: NameFlags): Promise<string> {
  const named = name === undefined ? [] : [name];
  const all = [...named, ...(filename.length > 0 ? (await readUpdates(filename)).map((update) => update.name) : [])];
  const [only] = all;
  if (only !== undefined && all.length === 1) return only;
  throw new KcoreError({
    code: "USAGE",
    message: all.length === 0 ? "no update is named" : `${all.length} updates are named, and one is wanted`,
    hint: "its name, or -f FILE with its manifest; kcore update cluster list tells them",
  });
}
