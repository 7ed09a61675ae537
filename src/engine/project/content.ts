import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { shippedRoot } from "./shipped.ts";

/** Bytes up to which a file is compared by what it holds, beyond by its size and time: a run does not wait for large contents. */
const readWhole = 1 << 18;

/** What a report at a run's end is called (`--report`); in the project's own folder it is none of what the run goes by. */
const reports = /^[^/]+\.(html|xml|md|json)$/;
/** Folders in folders: links may lead in a circle. */
const deepest = 16;

/** What a project holds, by file: what a run goes by, to be compared when it is resumed. */
export type ProjectContent = Readonly<Record<string, string>>;

/** Everything in the project but what is hidden, since a step's source may lie anywhere in it; and the kcore that reads it. */
export function contentOf(project: string): ProjectContent {
  const content: Record<string, string> = { "kcore itself": markOf(join(shippedRoot(), "package.json")) };
  const walk = (folder: string, depth: number): void => {
    for (const entry of readdirSync(join(project, folder))) {
      const name = join(folder, entry);
      if (entry.startsWith(".") || entry === "node_modules" || reports.test(name)) continue;
      const isFolder = statSync(join(project, name), { throwIfNoEntry: false })?.isDirectory() === true;
      if (isFolder && depth < deepest) walk(name, depth + 1);
      else content[name] = markOf(join(project, name));
    }
  };
  walk("", 0);
  return content;
}

/** Files that came, went or hold something else, sorted. */
export function changedFiles(before: ProjectContent, now: ProjectContent): readonly string[] {
  return [...new Set([...Object.keys(before), ...Object.keys(now)])]
    .filter((name) => before[name] !== now[name])
    .sort();
}

function markOf(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (!stats?.isFile()) return "no file";
  if (stats.size > readWhole) return `${stats.size} ${stats.mtimeMs}`;
  try {
    return createHash("sha256").update(readFileSync(path)).digest("hex");
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? "unreadable";
  }
}
