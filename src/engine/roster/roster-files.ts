import type { Stats } from "node:fs";
import { join } from "node:path";
import { KcoreError } from "#errors/problem.ts";
import { mapHint, unknownKey } from "#engine/yaml/issues.ts";
import type { SourceEntry, SourceMap, SourceNode } from "#engine/yaml/node.ts";
import type { Problems } from "#engine/yaml/problems.ts";
import { parseSource } from "#engine/yaml/parse.ts";
import { readSource } from "#engine/yaml/read.ts";
import { MAX_ROSTER_BYTES } from "#engine/yaml/regular-file.ts";
import { checkPlaces } from "#engine/encrypted-values/places.ts";
import { DEFAULTS_FILE, rosterFileNames, sourceNames } from "./roster-paths.ts";
import { readSources, type SourceOptions, checkLimits } from "./sources.ts";
import { FILE_KEYS } from "./entry-schema.ts";

/** One roster file, split into its parts; the entries are not checked yet. */
export interface RosterFile {
  /** Relative to the project: `roster/dc1.yaml`; a source's answer lies in `.kcore/roster`. */
  readonly name: string;
  readonly defaults?: SourceNode;
  readonly groups: ReadonlyMap<string, SourceEntry>;
  readonly nodes: ReadonlyMap<string, SourceEntry>;
  readonly jumps: ReadonlyMap<string, SourceEntry>;
}

/** A roster file's text and the name that problems show. */
export interface RosterText {
  readonly file: string;
  readonly text: string;
}

/**
 * The files of `roster/`, defaults.yaml first, then by name, then the answers of sources. Adds the problems, and leaves out files that cannot
 * be read. `check` refuses a file by its owner and mode. `instead` is read in place of the file of that name, or as a further file.
 * @throws KcoreError ROSTER_NOT_FOUND
 */
export function readRosterFiles(
  project: string,
  problems: Problems,
  check?: (name: string, stats: Stats) => void,
  instead?: RosterText,
  sources: SourceOptions = {},
): RosterFile[] {
  const names = rosterFileNames(project);
  const newName = instead?.file.replace(/^roster\//, "");
  // The defaults of defaults.yaml count for all files only if it is the first file.
  if (newName === DEFAULTS_FILE && !names.includes(newName)) names.unshift(newName);
  if (newName !== undefined && !names.includes(newName)) names.push(newName);
  if (names.length === 0 && sourceNames(project).length === 0)
    throw new KcoreError({
      code: "ROSTER_NOT_FOUND",
      message: `${join(project, "roster")} holds no roster file`,
      hint: "kcore roster add NAME --address ADDRESS",
    });
  const written = names.flatMap((file) => {
    const name = `roster/${file}`;
    const options = { name, maxBytes: MAX_ROSTER_BYTES, ...(check && { check }) };
    const source = problems.attempt(() =>
      instead?.file === name
        ? parseSource(name, instead.text, { maxBytes: MAX_ROSTER_BYTES })
        : readSource(join(project, name), options),
    );
    if (source === undefined) return [];
    checkPlaces(source, problems);
    return [rosterFileOf(name, source, problems)];
  });
  const sourceAnswers = readSources(project, problems, { ...sources, ...(check && { check }) });
  const answers = sourceAnswers.map((answer) => {
    checkLimits(answer, problems);
    return rosterFileOf(answer.name, answer.tree, problems);
  });
  return [...written, ...answers];
}

function rosterFileOf(name: string, source: SourceNode, problems: Problems): RosterFile {
  const empty = { name, groups: new Map(), nodes: new Map(), jumps: new Map() };
  if (source.kind === "scalar" && source.value === null) return empty;
  if (source.kind !== "map") {
    problems.add({
      code: "YAML_TYPE",
      message: "a roster is a map of defaults, groups, nodes and jumps",
      at: source.at,
    });
    return empty;
  }
  let emptyPart: string | undefined;
  for (const { key, keyAt, value } of source.entries.values()) {
    if ((FILE_KEYS as readonly string[]).includes(key)) {
      emptyPart = isNothing(value) ? key : undefined;
      continue;
    }
    const problem = unknownKey(key, keyAt, FILE_KEYS);
    // The unknown key is probably an entry of the empty part above it, wrongly indented.
    const hint = `to stand in “${emptyPart}” it begins at column ${keyAt.column + 2}: “${key}:”`;
    problems.add(emptyPart === undefined ? problem : { ...problem, hint });
  }
  const defaults = source.get("defaults");
  return {
    name,
    ...(defaults !== undefined && !isNothing(defaults) && { defaults }),
    groups: entriesIn(source, "groups", problems),
    nodes: entriesIn(source, "nodes", problems),
    jumps: entriesIn(source, "jumps", problems),
  };
}

function entriesIn(source: SourceMap, key: string, problems: Problems): ReadonlyMap<string, SourceEntry> {
  const node = source.get(key);
  if (node === undefined || isNothing(node)) return new Map();
  if (node.kind === "map") return node.entries;
  const hint = namesHint(node) ?? mapHint(node);
  problems.add({ code: "YAML_TYPE", message: `“${key}” must be a map of names`, at: node.at, hint });
  return new Map();
}

/** The hint for a list of nodes, the form that other programs use: in kcore each name is a key. */
function namesHint(node: SourceNode): string | undefined {
  const first = node.kind === "list" ? node.items[0] : undefined;
  const name = first?.kind === "map" ? first.get("name") : undefined;
  if (name?.kind !== "scalar") return undefined;
  return `the name is the key, from column ${node.at.column} on: “${name.source}: { address: … }”`;
}

/** Whether the node is null, as a key without a value is. */
export function isNothing(node: SourceNode): boolean {
  return node.kind === "scalar" && node.value === null;
}
