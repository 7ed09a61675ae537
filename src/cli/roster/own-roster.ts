import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { readFile, stat } from "node:fs/promises";
import { trustOfProcess } from "#engine/project/project.ts";
import { loadRoster, type LoadOptions } from "#engine/roster/load-roster.ts";
import type { NodeEntry, Roster } from "#engine/roster/roster.ts";
import { Problems } from "#engine/yaml/problems.ts";
import { rosterFileNames, sourceNames } from "#engine/roster/roster-paths.ts";
import { sourceOf } from "#engine/roster/sources.ts";
import { visible } from "#errors/draw.ts";
import { readRosterFiles, type RosterText } from "#engine/roster/roster-files.ts";
import { KcoreError, usageError } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import { ifThere, replaceFile } from "#base/file.ts";

/** The roster of a project, as the user of this process may read it. @throws KcoreError as loadRoster */
export function ownRoster(
  project: string,
  { sources, ...options }: Pick<LoadOptions, "instead" | "sources"> = {},
): Roster {
  const stale = process.env["KCORE_ROSTER_STALE"] === "1";
  const warn = (message: string): void => void process.stderr.write(`${visible(message)}\n`);
  const sourceOptions = { stale, warn, ...sources };
  return loadRoster(project, {
    trust: trustOfProcess(process.env),
    home: homedir(),
    sources: sourceOptions,
    ...options,
  });
}

/** As {@link ownRoster}, but an empty roster while the project has no roster file or source. */
export function rosterIfAny(project: string): Roster {
  if (rosterFileNames(project).length + sourceNames(project).length > 0) return ownRoster(project);
  return { nodes: new Map(), jumps: new Map(), positions: new Map(), files: [] };
}

/** The node of this name. @throws KcoreError ROSTER_NODE_UNKNOWN */
export function nodeNamed({ nodes }: Roster, name: string): NodeEntry {
  const found = nodes.get(name);
  if (found) return found;
  throw new KcoreError({
    code: "ROSTER_NODE_UNKNOWN",
    message: `no node “${name}” in the roster`,
    hint: suggestHint(name, nodes.keys(), "kcore roster list"),
  });
}

/** The text of a roster file; empty if the file is missing. */
export function readRosterText(project: string, file: string): string {
  const path = join(project, file);
  return existsSync(path) ? readFileSync(path, "utf8") : "";
}

/**
 * The entry that the roster would have with this text, before it is written. @throws KcoreError for a text that the
 * roster refuses
 */
export function entryWith(project: string, instead: RosterText, name: string): NodeEntry {
  const entry = ownRoster(project, { instead }).nodes.get(name);
  if (!entry) throw new Error(`the edited roster lost ${name}`);
  return entry;
}

/** The names of all groups in a project's roster files; none without a roster file. */
export function groupNames(project: string): ReadonlySet<string> {
  const problems = new Problems();
  const files =
    rosterFileNames(project).length > 0
      ? readRosterFiles(project, problems, undefined, undefined, { onlyKept: true })
      : [];
  return new Set(files.flatMap(({ groups }) => [...groups.keys()]));
}

/**
 * Changes the text of one roster file and writes it whole, with its mode; a missing file is made.
 * @throws KcoreError ROSTER_EDIT for a source
 */
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

/** The only file of the roster, for a new node without `--file`. @throws KcoreError USAGE */
export function onlyFile(project: string): string {
  const names = rosterFileNames(project).filter((name) => name !== "defaults.yaml");
  const [first] = names;
  if (names.length === 1 && first !== undefined) return `roster/${first}`;
  throw usageError(
    names.length === 0 ? "roster/ holds no file to add to" : `roster/ holds several files: ${names.join(", ")}`,
    names.length === 0 ? "echo 'nodes: {}' > roster/nodes.yaml" : `name one with --file ${names[0]}`,
  );
}
