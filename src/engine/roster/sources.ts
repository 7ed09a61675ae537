import { existsSync, readFileSync, statSync, type Stats } from "node:fs";
import { join } from "node:path";
import { replaceFileSync } from "#base/file.ts";
import { makeFolderSync } from "#base/folder.ts";
import { shortAge } from "#base/units.ts";
import { KcoreError } from "#errors/problem.ts";
import type { Problems } from "#engine/yaml/problems.ts";
import type { SourceNode, SourceEntry } from "#engine/yaml/node.ts";
import { parseSource } from "#engine/yaml/parse.ts";
import { MAX_ROSTER_BYTES, readBytes, withRegularFile } from "#engine/yaml/regular-file.ts";
import { decodeSource } from "#engine/yaml/scan.ts";
import { answerOf, answersFolder, sourceNames } from "./roster-paths.ts";
import { runSource } from "./run-source.ts";
import { parseReference } from "#engine/params/secret-reference.ts";
import { scalarsOf } from "#engine/encrypted-values/places.ts";

/** How the sources of a roster are queried: the programs and addresses in `roster/` that answer with a roster file. */
export interface SourceOptions {
  /** Queries the sources now, even after a fresh answer. */
  readonly refresh?: boolean;
  /** Uses a source's last answer if the source fails, and warns. */
  readonly stale?: boolean;
  /** Queries no source; uses the last answers, however old, and leaves out a source without one. For work that must be quick. */
  readonly onlyKept?: boolean;
  readonly warn?: (message: string) => void;
}

/** A source's answer, under the name of the file that keeps it: positions in the answer refer to that file. */
export interface SourceAnswer {
  readonly name: string;
  readonly tree: SourceNode;
}

/** Milliseconds for which an answer counts: the commands of one task see one roster, and the next task a new one. */
const freshMs = 60_000;
/** The sources of a project that have never answered: `roster/cmdb.url`. */
export function unansweredSources(project: string): string[] {
  return sourceNames(project).flatMap((name) => (existsSync(join(project, answerOf(name))) ? [] : [`roster/${name}`]));
}

/** The path of the source that produced a roster file; the file itself if an operator wrote it. */
export function sourceOf(file: string): string {
  const [, name] = /^\.kcore\/roster\/(.+)\.yaml$/.exec(file) ?? [];
  return name === undefined ? file : `roster/${name}`;
}

/** The answer of each source; its last answer while that is fresh. A failure is a problem, never an empty roster. */
export function readSources(
  project: string,
  problems: Problems,
  { check, ...options }: SourceOptions & { readonly check?: (name: string, stats: Stats) => void } = {},
): SourceAnswer[] {
  return sourceNames(project).flatMap((source) => {
    const answer = problems.attempt(() => new Source(project, source, check).answer(options));
    return answer === undefined ? [] : [answer];
  });
}

class Source {
  readonly #project: string;
  readonly #source: string;
  readonly #check: ((name: string, stats: Stats) => void) | undefined;

  constructor(project: string, source: string, check: ((name: string, stats: Stats) => void) | undefined) {
    this.#project = project;
    this.#source = source;
    this.#check = check;
  }

  answer({ refresh = false, stale = false, onlyKept = false, warn }: SourceOptions): SourceAnswer | undefined {
    const age = this.#age();
    if (onlyKept) return age === undefined ? undefined : this.#readKept();
    if (!refresh && age !== undefined && age < freshMs) return this.#readKept();
    try {
      return this.#query();
    } catch (error) {
      if (!(error instanceof KcoreError)) throw error;
      // An untrusted source is not run, and its last answer does not replace it.
      const isFailure = error.problems.every(({ code }) => code !== "PROJECT_NOT_TRUSTED");
      if (!stale || !isFailure || age === undefined) throw this.#withAge(error, age);
      warn?.(`${error.problems[0]?.message ?? ""}: taken from what it said ${shortAge(age)} ago`);
      return this.#readKept();
    }
  }

  get #name(): string {
    return answerOf(this.#source);
  }

  /** Milliseconds since the last answer; an answer older than the source itself is never fresh. */
  #age(): number | undefined {
    const answer = statSync(join(this.#project, this.#name), { throwIfNoEntry: false });
    const source = statSync(join(this.#project, "roster", this.#source));
    if (answer === undefined) return undefined;
    const age = Math.max(0, Date.now() - answer.mtimeMs);
    return source.mtimeMs > answer.mtimeMs ? Math.max(age, freshMs) : age;
  }

  #readKept(): SourceAnswer {
    const options = { name: this.#name, maxBytes: MAX_ROSTER_BYTES, ...(this.#check && { check: this.#check }) };
    const text = readBytes(join(this.#project, this.#name), options);
    return { name: this.#name, tree: parseSource(this.#name, text, { maxBytes: MAX_ROSTER_BYTES }) };
  }

  #query(): SourceAnswer {
    const shown = `roster/${this.#source}`;
    const path = join(this.#project, shown);
    withRegularFile(path, { name: shown, check: this.#check }, () => undefined);
    const url = this.#source.endsWith(".url") ? urlIn(shown, readFileSync(path, "utf8")) : undefined;
    const text = decodeSource(
      shown,
      runSource({ shown, project: this.#project, path, ...(url !== undefined && { url }) }),
      MAX_ROSTER_BYTES,
    );
    return { name: this.#name, tree: this.#keep(text) };
  }

  /**
   * Keeps an answer that can be parsed in the place of the last one. Any other answer is kept as `.refused`, the file to which the positions
   * of the error refer. @throws errors of parsing
   */
  #keep(text: string): SourceNode {
    makeFolderSync(join(this.#project, answersFolder));
    const write = (name: string): void => replaceFileSync(join(this.#project, name), text);
    try {
      parseSource(this.#name, text, { maxBytes: MAX_ROSTER_BYTES });
    } catch {
      const refused = `${answersFolder}/${this.#source}.refused`;
      write(refused);
      parseSource(refused, text, { maxBytes: MAX_ROSTER_BYTES });
    }
    write(this.#name);
    return parseSource(this.#name, text, { maxBytes: MAX_ROSTER_BYTES });
  }

  #withAge(error: KcoreError, age: number | undefined): KcoreError {
    if (age === undefined) return error;
    const hint = `KCORE_ROSTER_STALE=1 takes what it said ${shortAge(age)} ago`;
    return new KcoreError(
      error.problems.map((problem) => (problem.code === "ROSTER_SOURCE" ? { ...problem, hint } : problem)),
      { exitCode: error.exitCode, cause: error },
    );
  }
}

function urlIn(shown: string, text: string): string {
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== "" && !line.startsWith("#"));
  const [url = ""] = lines;
  if (lines.length === 1 && URL.canParse(url.trim()) && new URL(url.trim()).protocol === "https:") return url.trim();
  throw new KcoreError({
    code: "ROSTER_SOURCE",
    message: `${shown} does not hold one address`,
    hint: "one line: https://cmdb.example.org/kcore; a source that needs a login is a program, roster/NAME.sh",
  });
}

/** Keys of nodes, groups, defaults and jump hosts whose values name files or commands of the bastion. */
const bastionKeys: ReadonlySet<string> = new Set(["identityFile", "identityPassphrase", "consoleLog"]);

const local = "transport: local";
/** The hint for a refused `transport: local`. */
export const localHint = "a node with transport: local stands in a file of roster/";

/**
 * Adds a problem for each value in a source's answer that would make the bastion read a file, run a command or use a secret.
 * An answer is less trusted than the project (docs/security.md, A source of the roster).
 */
export function checkLimits({ name, tree }: SourceAnswer, problems: Problems): void {
  if (tree.kind !== "map") return;
  const refuse = ({ key, keyAt }: Pick<SourceEntry, "key" | "keyAt">, what = key): void =>
    problems.add({
      code: "ROSTER_SOURCE_LIMIT",
      message: `${sourceOf(name)} may not give “${what}”, which acts on this machine`,
      at: keyAt,
      hint: what === local ? localHint : "write it into a file of roster/: defaults, or a group that the answer names",
    });
  const entriesOf = (node: SourceNode | undefined): readonly SourceEntry[] =>
    node?.kind === "map" ? [...node.entries.values()] : [];
  const named = ["groups", "nodes", "jumps"].flatMap((part) => entriesOf(tree.get(part)));
  for (const layer of [tree.get("defaults"), ...named.map(({ value }) => value)]) {
    if (layer?.kind !== "map") continue;
    for (const entry of layer.entries.values()) {
      const { key, value } = entry;
      if (bastionKeys.has(key)) refuse(entry);
      if (key === "transport" && value.kind === "scalar" && value.value === "local") refuse(entry, local);
      const password = key === "sudo" && value.kind === "map" ? value.entries.get("password") : undefined;
      if (password !== undefined) refuse(password, "sudo.password");
    }
  }
  // A variable given to a parameter of type secret would be read as a reference.
  for (const { node, path } of scalarsOf(tree, (value) => parseReference(value) !== undefined))
    refuse({ key: "", keyAt: node.at }, `a reference to a secret in ${path.join(".")}`);
}
