import { existsSync, readdirSync, statSync, type Stats } from "node:fs";
import { join, normalize } from "node:path";
import { KcoreError } from "#errors/problem.ts";
import { checkOf, type Trust } from "./project.ts";

/** A folder to search for files of one kind. */
export interface Folder {
  /** Absolute path. */
  readonly path: string;
  /** As problems name it: `states`. */
  readonly shown: string;
  /** The owner of the folder, for lists. */
  readonly origin: "project" | "pack" | "shipped";
  /** The prefix of its files' names: a pack's `web/`. */
  readonly prefix?: string;
  /** Throws if an opened file is not trusted (S-20). */
  readonly check?: (name: string, stats: Stats) => void;
}

export interface FoundFile {
  readonly path: string;
  /** As problems name it: `states/kcore/controller.yaml`. */
  readonly shown: string;
  readonly folder: Folder;
}

/** The folder of a project's packs, each in a folder of its name (docs/packs.md). */
export const packsFolder = "packs";

/**
 * The folders of this kind: the project's folder, if there is a project, the folders of its packs, then the shipped folder. `trust`: the users
 * whose files are trusted (S-20). @throws KcoreError PACK_INVALID
 */
export function foldersOf(
  kind: string,
  {
    project,
    shipped,
    trust,
  }: { readonly project?: string | undefined; readonly shipped: string; readonly trust?: Trust },
): readonly Folder[] {
  const shippedFolder: Folder = { path: join(shipped, kind), shown: kind, origin: "shipped" };
  if (project === undefined || project === shipped) return [shippedFolder];
  const check = trust && { check: checkOf(trust) };
  // `.` names the project's files by their paths; files of packs are among them.
  const packs = kind === "." ? [] : packNames(project);
  for (const name of packs) refuseShippedName(name, shipped);
  return [
    { path: join(project, kind), shown: kind, origin: "project", ...check },
    ...packs.map((name): Folder => {
      const shown = join(packsFolder, name, kind);
      return { path: join(project, shown), shown, origin: "pack", prefix: `${name}/`, ...check };
    }),
    shippedFolder,
  ];
}

/** The packs of a project, sorted: folders with a `pack.yaml`. */
export function packNames(project: string): readonly string[] {
  const folder = join(project, packsFolder);
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true) return [];
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && existsSync(join(folder, entry.name, "pack.yaml")))
    .map(({ name }) => name)
    .sort();
}

const shippedKinds = ["states", "orchestrate", "templates"] as const;

/** Refuses a pack that is named like shipped files: the pack's files would hide the shipped files. @throws KcoreError PACK_INVALID */
export function refuseShippedName(pack: string, shipped: string): void {
  const isTaken = (kind: string): boolean =>
    [pack, `${pack}.yaml`].some((name) => existsSync(join(shipped, kind, name)));
  if (pack !== "kcore" && !shippedKinds.some(isTaken)) return;
  throw new KcoreError({
    code: "PACK_INVALID",
    message: `no pack can be called “${pack}”: kcore's own states, orchestrations or templates have that name`,
    hint: `give it another name in its pack.yaml; kcore pack remove ${pack} takes it out of a project`,
  });
}

/** The project's files that replace shipped ones, as problems name them. */
export function overriddenFiles(places: { readonly project: string; readonly shipped: string }): readonly string[] {
  return shippedKinds.flatMap((kind) => {
    const [own, shipped] = foldersOf(kind, places).filter(({ origin }) => origin !== "pack");
    if (own === undefined || shipped === undefined) return [];
    const shippedFiles = listIn([shipped], [""]);
    return [...listIn([own], [""])].flatMap(([name, { shown }]) => (shippedFiles.has(name) ? [shown] : []));
  });
}

/** Whether `name` stays inside the folder it is looked up in. */
export function isInside(name: string): boolean {
  const normal = normalize(name);
  return name !== "" && !name.includes("\0") && !normal.startsWith("/") && normal !== ".." && !normal.startsWith("../");
}

/** The first folder's file of this name; undefined if none has it, or the name leaves the folder. */
export function findIn(folders: readonly Folder[], name: string): FoundFile | undefined {
  if (!isInside(name)) return undefined;
  for (const folder of folders) {
    const { prefix = "" } = folder;
    if (!name.startsWith(prefix)) continue;
    const own = name.slice(prefix.length);
    if (!isInside(own)) continue;
    const path = join(folder.path, own);
    if (statSync(path, { throwIfNoEntry: false })?.isFile() === true)
      return { path, shown: join(folder.shown, own), folder };
  }
  return undefined;
}

/** The files below the folders that end in one of `endings`, without hidden ones, sorted by name; the first folder that has a name wins. */
export function listIn(folders: readonly Folder[], endings: readonly string[]): Map<string, FoundFile> {
  const found = new Map<string, FoundFile>();
  for (const folder of folders)
    for (const own of filesBelow(folder.path, "", 0)) {
      const name = `${folder.prefix ?? ""}${own}`;
      if (endings.some((ending) => name.endsWith(ending)) && !found.has(name))
        found.set(name, { path: join(folder.path, own), shown: join(folder.shown, own), folder });
    }
  return new Map([...found].sort(([a], [b]) => (a < b ? -1 : 1)));
}

const MAX_LEVELS = 8;

function filesBelow(root: string, below: string, level: number): string[] {
  if (level > MAX_LEVELS) return [];
  const path = join(root, below);
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) return [];
  return readdirSync(path, { withFileTypes: true }).flatMap((entry) => {
    if (entry.name.startsWith(".")) return [];
    const name = below === "" ? entry.name : `${below}/${entry.name}`;
    return entry.isDirectory() ? filesBelow(root, name, level + 1) : [name];
  });
}
