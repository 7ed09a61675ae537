import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync, type Stats } from "node:fs";
import { join } from "node:path";
import { shippedRoot } from "./shipped.ts";

/** Bytes; a larger file is compared by size and time, since a run does not wait for large contents. */
const maxHashed = 1 << 18;

/** Files that `--report` writes into the project's own folder: a run does not depend on them. */
const reports = /^[^/]+\.(html|xml|md|json)$/;
/** Nesting of folders at most: links may lead in a circle. */
const maxDepth = 16;

/** By file of a project, its hash, or size and time; compared when a run is resumed. */
export type ProjectContent = Readonly<Record<string, string>>;

/** Marks of kcore itself and of the project's files, without hidden files, `node_modules` and reports: a step's source may lie anywhere. */
export function readProjectContent(project: string): ProjectContent {
  const content: Record<string, string> = { "kcore itself": markOf(join(shippedRoot(), "package.json")) };
  const walk = (folder: string, depth: number): void => {
    for (const entry of namesIn(join(project, folder))) {
      const name = join(folder, entry);
      if (entry.startsWith(".") || entry === "node_modules" || reports.test(name)) continue;
      const isFolder = statsOf(join(project, name))?.isDirectory() === true;
      if (isFolder && depth < maxDepth) walk(name, depth + 1);
      else content[name] = markOf(join(project, name));
    }
  };
  walk("", 0);
  return content;
}

/** Files that were added, removed or changed, sorted. */
export function changedFiles(before: ProjectContent, now: ProjectContent): readonly string[] {
  return [...new Set([...Object.keys(before), ...Object.keys(now)])]
    .filter((name) => before[name] !== now[name])
    .sort();
}

/** The names in a folder; none in a folder that kcore cannot read. */
function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** Undefined for a link to nothing or to itself, too. */
function statsOf(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    return undefined;
  }
}

function markOf(path: string): string {
  const stats = statsOf(path);
  if (!stats?.isFile()) return "no file";
  if (stats.size > maxHashed) return `${stats.size} ${stats.mtimeMs}`;
  try {
    return createHash("sha256").update(readFileSync(path)).digest("hex");
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? "unreadable";
  }
}
