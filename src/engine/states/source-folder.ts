import { createHash } from "node:crypto";
import { lstatSync, readdirSync, readFileSync, readlinkSync, readSync, statSync } from "node:fs";
import { basename, isAbsolute, join } from "node:path";
import { KcoreError } from "#errors/problem.ts";
import { isInside, type Folder } from "#engine/project/folders.ts";
import type { FolderEntry } from "#engine/step/define.ts";
import { Problems } from "#engine/yaml/problems.ts";
import { withRegularFile } from "#engine/yaml/regular-file.ts";

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
  const places = isAbsolute(name) ? [{ path: name, check: folders[0]?.check }] : isInside(name) ? folders : [];
  const found = places
    .map(({ path, check }) => ({ root: isAbsolute(name) ? name : join(path, name), name, check }))
    .find(({ root }) => statSync(root, { throwIfNoEntry: false })?.isDirectory());
  if (!found) {
    const hint = "the path is relative to the project's folder and must not leave it";
    throw new KcoreError({ code: "FILE_UNREADABLE", message: `no folder “${name}” in the project`, hint });
  }
  const problems = new Problems();
  const entries: FolderEntry[] = [];
  const isLeftOut = leftOut(exclude);
  const read = (folder: string): void => {
    const paths = readdirSync(join(found.root, folder)).map((own) => join(folder, own));
    const kept = paths.sort().filter((path) => !isLeftOut(path));
    const made = kept.flatMap((path) => problems.attempt(() => readEntry(found, path)) ?? []);
    entries.push(...made);
    if (entries.length > mostEntries) throw invalid(`${name} has more than ${mostEntries} entries`, "exclude some");
    for (const { kind, name: path } of made) if (kind === "folder") read(path);
  };
  read("");
  problems.throwIfAny();
  return entries;
}

/**
 * Whether a glob of `*` and `?` leaves a path out, as `-name` and, for a glob with `/`, `-path` of find(1) match it. A folder
 * that an interrupted step leaves on a node has a name of kcore's own.
 */
function leftOut(globs: readonly string[]): (path: string) => boolean {
  const matchers = [...globs, ".kcore-*"].map((glob) => {
    const pattern = new RegExp(`^${RegExp.escape(glob).replaceAll("\\*", ".*").replaceAll("\\?", ".")}$`, "su");
    return (path: string) => pattern.test(glob.includes("/") ? path : basename(path));
  });
  return (path) => matchers.some((matches) => matches(path));
}

function readEntry(
  { root, name: folder, check }: Readonly<Record<"root" | "name", string>> & { readonly check: Folder["check"] },
  name: string,
): FolderEntry {
  const [file, shown] = [join(root, name), join(folder, name)];
  const stats = lstatSync(file);
  const none = { name, target: "", sha256: "-", size: 0, isProgram: false, read: () => new Uint8Array() };
  if (name.includes("\n")) throw invalid(`${JSON.stringify(shown)} has a line break in its name`, "rename it");
  if (stats.isSymbolicLink()) {
    const target = readlinkSync(file);
    if (!isAbsolute(target) && isInside(join(name, "..", target))) return { ...none, kind: "link", target };
    throw invalid(`${shown} is a link out of its folder, to ${target}`, "put a copy there, or exclude it");
  }
  if (stats.isDirectory()) {
    check?.(shown, stats);
    return { ...none, kind: "folder" };
  }
  if (!stats.isFile()) throw invalid(`${shown} is neither a file, a folder nor a link`, "exclude it");
  const { bytes, ...hashed } = withRegularFile(file, { name: shown, check }, hashOpenFile);
  const isProgram = (stats.mode & 0o100) !== 0;
  return { ...none, ...hashed, kind: "file", isProgram, read: () => bytes ?? readFileSync(file) };
}

function invalid(message: string, hint: string): KcoreError {
  return new KcoreError({ code: "FOLDER_INVALID", message, hint });
}

/** Bytes: files up to this size stay in memory, since modules parse keys and certificates. */
const smallLimit = 64 << 10;

/** One for all calls, since each call is over before the next one begins. */
const chunk = Buffer.alloc(1 << 20);

/** The hash and size of an open file, and the bytes of a small one. */
export function hashOpenFile(file: number): { sha256: string; size: number; bytes?: Uint8Array } {
  const hash = createHash("sha256");
  let size = 0;
  for (let read = readSync(file, chunk); read > 0; read = readSync(file, chunk)) {
    hash.update(chunk.subarray(0, read));
    size += read;
  }
  // One read gives all of a small regular file, so the chunk still holds it.
  return {
    sha256: hash.digest("hex"),
    size,
    ...(size <= smallLimit && { bytes: Buffer.from(chunk.subarray(0, size)) }),
  };
}
