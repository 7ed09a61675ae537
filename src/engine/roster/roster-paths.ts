import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";

/** The folder of the sources' last answers, relative to the project. */
export const answersFolder = ".kcore/roster";
export const DEFAULTS_FILE = "defaults.yaml";

/** The file that keeps the last answer of a source, relative to the project. */
export function answerOf(source: string): string {
  return `${answersFolder}/${source}.yaml`;
}

/** The files from which a roster is read while no source is queried, relative to the project. */
export function rosterPaths(project: string): readonly string[] {
  const answers = sourceNames(project).map(answerOf);
  const written = rosterFileNames(project).map((name) => `roster/${name}`);
  return [...written, ...answers.filter((answer) => existsSync(join(project, answer)))];
}

/** The names of the YAML files in `roster/`: defaults.yaml first, then by name. */
export function rosterFileNames(project: string): string[] {
  const folder = join(project, "roster");
  if (!existsSync(folder)) return [];
  const names = readdirSync(folder).filter((name) => /^[^.].*\.ya?ml$/.test(name));
  return names.sort((a, b) => Number(b === DEFAULTS_FILE) - Number(a === DEFAULTS_FILE) || (a < b ? -1 : 1));
}

/** The sources in `roster/`, by name: `*.url`, and each executable file that is no YAML; backups and hidden files are none. */
export function sourceNames(project: string): string[] {
  const folder = join(project, "roster");
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => /^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(name) && !/\.(ya?ml|md|orig|bak|swp)$/.test(name))
    .filter((name) => {
      const stats = statSync(join(folder, name), { throwIfNoEntry: false });
      return stats?.isFile() === true && (name.endsWith(".url") || (stats.mode & 0o100) !== 0);
    })
    .toSorted();
}
