import { existsSync, readdirSync } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { join, relative, resolve } from "node:path";
import { checkOf, trustOfProcess } from "#engine/project/project.ts";
import { openerOf } from "#engine/encrypted-values/opener.ts";
import { readRecipients } from "#engine/encrypted-values/recipients.ts";
import { sealedIn } from "#engine/encrypted-values/places.ts";
import type { RosterText } from "#engine/roster/roster-files.ts";
import type { SourceNode } from "#engine/yaml/node.ts";
import { readSource } from "#engine/yaml/read.ts";
import { MAX_ROSTER_BYTES } from "#engine/yaml/regular-file.ts";
import { KcoreError, usageError } from "#errors/problem.ts";
import { replaceFile } from "#base/file.ts";
import { findProject } from "../project/find-project.ts";
import { ownRoster } from "../roster/own-roster.ts";
import { askSecret } from "../terminal/ask-operator.ts";

/** A project, as the commands for its secrets see it. */
export type ProjectSecrets = ReturnType<typeof projectSecrets>;

/** @throws KcoreError PROJECT_NOT_FOUND, PROJECT_NOT_TRUSTED */
export function projectSecrets(given: string | undefined) {
  const root = findProject(given);
  const check = checkOf(trustOfProcess(process.env));
  const ask = (text: string): Promise<string | undefined> => askSecret(text);
  return {
    root,
    check,
    opener: openerOf({ env: process.env, home: homedir(), ask }),
    recipients: () => readRecipients(root, check),
  };
}

/**
 * The name in the project of a YAML or JSON file, for a path relative to the working folder or to the project.
 * @throws KcoreError USAGE
 */
export function nameIn({ root }: Pick<ProjectSecrets, "root">, file: string): string {
  const path = existsSync(resolve(file)) ? resolve(file) : resolve(root, file);
  const name = relative(root, path);
  if (name !== "" && !name.startsWith("..") && /\.(ya?ml|json)$/.test(name)) return name;
  throw usageError(
    `${file} is no YAML or JSON file of the project ${root}`,
    "a file in roster/, states/ or orchestrate/, or one for --params",
  );
}

/** The tree of a file of the project. */
export function readTree({ root, check }: ProjectSecrets, name: string): SourceNode {
  return readSource(join(root, name), { name, maxBytes: MAX_ROSTER_BYTES, check });
}

const skippedFolders = new Set(["node_modules", "templates"]);

/** The trees of the project's files with sealed values, by file name. @throws KcoreError for an unreadable file of kcore's */
export function sealedFiles(project: ProjectSecrets): readonly SourceNode[] {
  const names: string[] = [];
  const walk = (folder: string, depth: number): void => {
    for (const entry of readdirSync(join(project.root, folder), { withFileTypes: true })) {
      const name = join(folder, entry.name);
      if (entry.name.startsWith(".") || skippedFolders.has(entry.name)) continue;
      if (entry.isDirectory() && depth < 8) walk(name, depth + 1);
      else if (entry.isFile() && /\.(ya?ml|json)$/.test(entry.name)) names.push(name);
    }
  };
  walk("", 0);
  return names.sort().flatMap((name) => {
    try {
      const tree = readTree(project, name);
      return sealedIn(tree).length > 0 ? [tree] : [];
    } catch (error) {
      // A file of another program need not be YAML that kcore reads.
      if (error instanceof KcoreError && !/^(roster|states|orchestrate)\//.test(name)) return [];
      throw error;
    }
  });
}

/**
 * Writes a file of the project whole, with the mode that it had. @throws KcoreError for a text that the roster refuses
 */
export async function writeText({ root }: ProjectSecrets, file: string, text: string): Promise<void> {
  if (/^roster\/[^/]+$/.test(file)) refuseBadRoster(root, { file, text });
  const path = join(root, file);
  if ((await textIfThere(path)) === text) return;
  const mode = existsSync(path) ? (await stat(path)).mode & 0o777 : 0o666 & ~process.umask();
  await replaceFile(path, text, { mode });
}

/**
 * Refuses a text with which the roster has mistakes, except for SECRET_MISPLACED: misplaced values are repaired one after
 * the other.
 */
function refuseBadRoster(root: string, instead: RosterText): void {
  try {
    ownRoster(root, { instead });
  } catch (error) {
    if (!(error instanceof KcoreError)) throw error;
    const others = error.problems.filter(({ code }) => code !== "SECRET_MISPLACED");
    if (others.length > 0) throw new KcoreError(others, { cause: error });
  }
}

/** The text of a file; empty for a missing one. */
export async function textIfThere(path: string): Promise<string> {
  return existsSync(path) ? readFile(path, "utf8") : "";
}
