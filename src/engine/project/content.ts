import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { shippedRoot } from "./shipped.ts";

/** Bytes up to which a file is compared by what it holds, beyond by its size and time: a run does not wait for large contents. */
const readWhole = 1 << 18;

/** Where what a run goes by lies; runs may write elsewhere. */
const folders = ["roster", "orchestrate", "states", "templates", "modules", "packs", "files"];

/** What a project holds, by file: what a run goes by, to be compared when it is resumed. */
export type ProjectContent = Readonly<Record<string, string>>;

/** Everything in these folders but what is hidden, and the kcore that reads it. */
export function contentOf(project: string): ProjectContent {
  const content: Record<string, string> = { "kcore itself": markOf(join(shippedRoot(), "package.json")) };
  const walk = (folder: string): void => {
    for (const entry of readdirSync(join(project, folder), { withFileTypes: true })) {
      const name = join(folder, entry.name);
      if (entry.name.startsWith(".")) continue;
      if (entry.isDirectory()) walk(name);
      else content[name] = markOf(join(project, name));
    }
  };
  for (const folder of folders) if (existsSync(join(project, folder))) walk(folder);
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
