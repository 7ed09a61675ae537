import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { KcoreError, usageError } from "#errors/problem.ts";
import { sourceOf } from "#engine/roster/sources.ts";
import { rosterFileNames, type RosterText } from "#engine/roster/roster-files.ts";
import { ifThere, replaceFile } from "#base/file.ts";

/** Changes the text of one roster file of a project and writes it as a whole, with the mode it had; a new one if need be. */
export async function editRosterFile(project: string, file: string, edit: (text: RosterText) => string): Promise<void> {
  const source = sourceOf(file);
  if (source !== file)
    throw new KcoreError({
      code: "ROSTER_EDIT",
      message: `${source} says this part of the roster, and nothing is written into what it said`,
      hint: `have ${source} print it; a host key may also stand in ~/.ssh/known_hosts`,
    });
  const path = join(project, file);
  const text = (await ifThere(readFile(path, "utf8"))) ?? "";
  const edited = edit({ file, text });
  if (edited === text) return;
  const { mode } = (await ifThere(stat(path))) ?? { mode: 0o666 & ~process.umask() };
  await replaceFile(path, edited, { mode: mode & 0o777 });
}

/** A roster file as `--file` names it, with or without its folder. @throws KcoreError USAGE */
export function namedFile(given: string): string {
  const name = given.replace(/^roster\//, "");
  if (/^[^./][^/]*\.ya?ml$/.test(name)) return `roster/${name}`;
  throw usageError(`${given} cannot be a roster file`, "a name that ends in .yaml; it lies in roster/");
}

/** The file that a new node goes into when none is named: the only one there is. @throws KcoreError USAGE */
export function onlyFile(project: string): string {
  const names = rosterFileNames(project).filter((name) => name !== "defaults.yaml");
  const [first] = names;
  if (names.length === 1 && first !== undefined) return `roster/${first}`;
  throw usageError(
    names.length === 0 ? "roster/ holds no file to add to" : `roster/ holds several files: ${names.join(", ")}`,
    names.length === 0 ? "echo 'nodes: {}' > roster/nodes.yaml" : `name one with --file ${names[0]}`,
  );
}
