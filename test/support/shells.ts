import { spawnSync } from "node:child_process";
import { basename, join } from "node:path";
import { isLongForm } from "./hostile.ts";
import { sliceBase } from "./slice.ts";
import { shells } from "./steps.ts";

const root = join(import.meta.dirname, "../..");
/** Folders of sh that every module runs with. */
const shared = ["src/engine/program/", "src/engine/step/"];
let changed: readonly string[] | undefined;

/**
 * The shells for a file of tests. The first, dash, is always among them. The others are added for a third of the files, which changes with each
 * commit, and for modules that the branch changed. `KCORE_SHELLS=all` takes all shells for every file.
 */
export function shellsOf(file: string, all: readonly string[] = shells): readonly string[] {
  const name = basename(file).replace(/\.[^]*/, "");
  const isAll = process.env["KCORE_SHELLS"] === "all" || isLongForm || isInSlice(name, sliceBase()) || isChanged(name);
  return isAll ? all : all.slice(0, 1);
}

/** Whether a module has its turn at this number: three successive numbers reach each module once. */
export function isInSlice(name: string, base: number): boolean {
  return Buffer.from(name).reduce((sum, byte) => sum + byte, base) % 3 === 0;
}

function isChanged(name: string): boolean {
  changed ??= changedFiles();
  return changed.some(
    (path) => basename(path).replace(/\.[^]*/, "") === name || shared.some((folder) => path.startsWith(folder)),
  );
}

/** Files that differ from the merge base with the main branch, committed or not; none outside git. */
function changedFiles(): readonly string[] {
  const git = (...words: string[]) => {
    const { status, stdout } = spawnSync("git", words, { cwd: root, encoding: "utf8" });
    return status === 0 ? stdout.trim() : undefined;
  };
  const base = git("merge-base", "HEAD", "origin/main") ?? git("merge-base", "HEAD", "main");
  if (base === undefined) return [];
  return [
    ["diff", "--name-only", base],
    ["ls-files", "--others", "--exclude-standard"],
  ].flatMap((words) => git(...words)?.split("\n") ?? []);
}
