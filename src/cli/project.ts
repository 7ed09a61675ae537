import { existsSync, lstatSync, readdirSync, type Stats } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { KcoreError, type Problem } from "#errors/problem.ts";

/** What kcore reads of a project. */
const folders = ["roster", "orchestrate", "states", "templates"] as const;

/**
 * The absolute path of the project: the given folder, or the nearest one upwards that holds `roster/` and
 * `orchestrate/`. It and its files belong to the user or root, and others cannot write them (S-20).
 * @throws KcoreError PROJECT_NOT_FOUND, PROJECT_NOT_TRUSTED
 */
export function findProject(given: string | undefined, from: string = process.cwd()): string {
  const project = given === undefined ? nearestProject(from) : resolve(from, given);
  if (project === undefined || !isProject(project))
    throw new KcoreError({
      code: "PROJECT_NOT_FOUND",
      message: given === undefined ? `no kcore project in ${from} or above it` : `${given} is not a kcore project`,
      hint: "a project holds roster/ and orchestrate/; make one with “kcore init DIR”, or name one with --project DIR",
    });
  const problems = distrust(project);
  if (problems.length > 0) throw new KcoreError(problems);
  return project;
}

function isProject(folder: string): boolean {
  return existsSync(join(folder, "roster")) && existsSync(join(folder, "orchestrate"));
}

function nearestProject(from: string): string | undefined {
  for (let folder = resolve(from); ; folder = dirname(folder)) {
    if (isProject(folder)) return folder;
    if (folder === dirname(folder)) return undefined;
  }
}

function distrust(project: string): Problem[] {
  const problems: Problem[] = [];
  const check = (path: string) => {
    const stat = lstatSync(path, { throwIfNoEntry: false });
    if (stat === undefined) return;
    const reason = untrusted(stat);
    if (reason !== undefined && problems.length < 10) problems.push(problemOf(path, reason));
    if (stat.isDirectory()) for (const name of readdirSync(path)) check(join(path, name));
  };
  const reason = untrusted(lstatSync(project));
  if (reason !== undefined) problems.push(problemOf(project, reason));
  for (const folder of folders) check(join(project, folder));
  return problems;
}

function untrusted(stat: Stats): string | undefined {
  const own = process.getuid?.() ?? 0;
  if (stat.uid !== own && stat.uid !== 0) return `belongs to user ${stat.uid}, not to you or root`;
  // A link's own mode says nothing; what it points at is checked when it is read.
  if (!stat.isSymbolicLink() && (stat.mode & 0o002) !== 0) return "may be written by everybody";
  return undefined;
}

function problemOf(path: string, reason: string): Problem {
  return {
    code: "PROJECT_NOT_TRUSTED",
    message: `${path} ${reason}`,
    hint: reason.startsWith("belongs") ? `chown -h "$(id -u)" ${path}, if you trust it` : `chmod o-w ${path}`,
  };
}
