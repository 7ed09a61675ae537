import { lstatSync, readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";
import { basename, isAbsolute, join } from "node:path";
import { KcoreError } from "#errors/problem.ts";
import { isInside, type Folder } from "#engine/project/folders.ts";
import type { FolderEntry } from "#engine/step/define.ts";
import { Problems } from "#engine/yaml/problems.ts";
import { withRegularFile } from "#engine/yaml/regular-file.ts";
import { hashOpenFile } from "./hash-file.ts";

/** Entries of one folder at most: each run compares all of them. */
const mostEntries = 20_000;

/**
 * The entries below a folder: those of one folder together, sorted, and behind the folder itself.
 * @throws KcoreError FILE_UNREADABLE, FOLDER_INVALID, PROJECT_NOT_TRUSTED, with every problem
 */
export function readSourceFolder(
  folders: readonly Folder[],
  name: string,
  exclude: readonly string[],
): readonly FolderEntry[] {
  const { root, check } = findFolder(folders, name);
  const problems = new Problems();
  const entries: FolderEntry[] = [];
  const isLeftOut = leftOut(exclude);
  const read = (folder: string): void => {
    const names = readdirSync(join(root, folder)).map((own) => join(folder, own));
    const made = names
      .toSorted(byBytes)
      .filter((path) => !isLeftOut(path))
      .flatMap((path) => problems.attempt(() => readEntry(root, path, { shown: join(name, path), check })) ?? []);
    entries.push(...made);
    if (entries.length > mostEntries) throw invalid(`${name} has more than ${mostEntries} entries`, "exclude some");
    for (const { kind, name: path } of made) if (kind === "folder") read(path);
  };
  read("");
  problems.throwIfAny();
  return entries;
}

function findFolder(folders: readonly Folder[], name: string): { root: string; check: Folder["check"] } {
  const places = isAbsolute(name) ? folders.slice(0, 1) : isInside(name) ? folders : [];
  const found = places
    .map(({ path, check }) => ({ root: isAbsolute(name) ? name : join(path, name), check }))
    .find(({ root }) => statSync(root, { throwIfNoEntry: false })?.isDirectory());
  if (found) return found;
  throw new KcoreError({
    code: "FILE_UNREADABLE",
    message: `no folder “${name}” in the project`,
    hint: "the path is relative to the project's folder and must not leave it",
  });
}

/**
 * Whether a glob of `*` and `?` leaves a path out, as `-name` and, for a glob with `/`, `-path` of find(1) match it. A folder
 * that an interrupted step leaves on a node has a name of kcore's own.
 */
function leftOut(globs: readonly string[]): (path: string) => boolean {
  const matchers = [...globs, ".kcore-*"].map((glob) => {
    const text = glob.replaceAll(/[^\w/ ]/gu, (sign) =>
      sign === "*" ? ".*" : sign === "?" ? "." : RegExp.escape(sign),
    );
    const pattern = new RegExp(`^${text}$`, "su");
    return (path: string) => pattern.test(glob.includes("/") ? path : basename(path));
  });
  return (path) => matchers.some((matches) => matches(path));
}

function readEntry(
  root: string,
  name: string,
  { shown, check }: { readonly shown: string; readonly check: Folder["check"] },
): FolderEntry {
  const file = join(root, name);
  const stats = lstatSync(file);
  if (name.includes("\n")) throw invalid(`${JSON.stringify(shown)} has a line break in its name`, "rename it");
  if (stats.isSymbolicLink()) {
    const target = readlinkSync(file);
    if (!isAbsolute(target) && isInside(join(name, "..", target))) return { kind: "link", name, target };
    throw invalid(`${shown} is a link out of its folder, to ${target}`, "put a copy there, or exclude it");
  }
  if (stats.isDirectory()) {
    check?.(shown, stats);
    return { kind: "folder", name };
  }
  if (!stats.isFile()) throw invalid(`${shown} is neither a file, a folder nor a link`, "exclude it");
  const { bytes, ...hashed } = withRegularFile(file, { name: shown, check }, hashOpenFile);
  const isProgram = (stats.mode & 0o100) !== 0;
  return { kind: "file", name, ...hashed, isProgram, read: () => bytes ?? readFileSync(file) };
}

function byBytes(one: string, other: string): number {
  return Buffer.compare(Buffer.from(one), Buffer.from(other));
}

function invalid(message: string, hint: string): KcoreError {
  return new KcoreError({ code: "FOLDER_INVALID", message, hint });
}
