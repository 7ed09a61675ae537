import type { Stats } from "node:fs";
import { KcoreError, type Problem, type SourcePosition } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import type { Trust } from "#engine/project/project.ts";
import type { Fetch } from "#engine/step/remote.ts";
import { findIn, type Folder, foldersOf, type FoundFile, listIn } from "#engine/project/folders.ts";
import { Problems } from "#engine/yaml/problems.ts";
import { checkPlaces } from "#engine/encrypted-values/places.ts";
import { readSource } from "#engine/yaml/read.ts";
import { openTemplates, type Templates } from "#engine/expressions/template.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { openStateFiles, type Files } from "./state-files.ts";
import { type StateWithProblems, readState, type State } from "./state.ts";

/** A state as `kcore state list` shows it. */
export interface StateOutline {
  readonly name: string;
  readonly description?: string;
  readonly origin: Folder["origin"];
  /** `states/kcore/controller.yaml` */
  readonly shown: string;
}

/**
 * The states of a project, then of its packs, then the shipped ones. `trust`: the users whose files of the project are trusted (S-20). `fetch`: gets
 * contents by their URLs; absent for a check, which sends nothing to nodes.
 */
export function statesOf(places: {
  readonly project?: string | undefined;
  /** The package's own folder. */
  readonly shipped: string;
  readonly trust?: Trust;
  readonly fetch?: Fetch;
}): States {
  const [states, templates, files] = [
    foldersOf("states", places),
    foldersOf("templates", places),
    foldersOf(".", places),
  ];
  return new States(states, openTemplates(templates), openStateFiles(files, places.fetch));
}

const ENDING = ".yaml";

/** The states, templates and files of {@link statesOf}; each state is read once. */
export class States {
  readonly templates: Templates;
  readonly files: Files;
  readonly #folders: readonly Folder[];
  readonly #read = new Map<string, StateWithProblems>();
  readonly #partlyRead = new Map<string, StateWithProblems>();

  constructor(folders: readonly Folder[], templates: Templates, files: Files) {
    this.#folders = folders;
    this.templates = templates;
    this.files = files;
  }

  /** All states by name; an unreadable state has no description. */
  list(): readonly StateOutline[] {
    return [...listIn(this.#folders, [ENDING])].map(([file, { shown, folder }]) => {
      const name = file.slice(0, -ENDING.length);
      const description = this.#one(name, undefined).state?.description;
      return { name, origin: folder.origin, shown, ...omitUndefined({ description }) };
    });
  }

  /**
   * A state and, checked with it, all that it includes.
   * @throws KcoreError STATE_NOT_FOUND, STATE_INCLUDE_CYCLE, and every problem of the files.
   */
  load(name: string): State {
    const { state, problems } = this.readPartly(name);
    if (state === undefined || problems.length > 0) throw new KcoreError(problems);
    return state;
  }

  /** The readable part of a state and its includes, with every problem of the files. */
  readPartly(name: string, at?: SourcePosition): StateWithProblems {
    const known = this.#partlyRead.get(name);
    if (known) return known;
    const problems = new Problems();
    this.#visit(name, at, [], problems);
    const { state } = this.#one(name, at);
    // A caller that follows the includes of a circle would never end.
    const isCircle = problems.list.some(({ code }) => code === "STATE_INCLUDE_CYCLE");
    const read = { problems: problems.inOrder(), ...(isCircle ? {} : omitUndefined({ state })) };
    // A missing state stays unknown, so that each place that names it gets its own problem.
    if (this.#read.has(name)) this.#partlyRead.set(name, read);
    return read;
  }

  /** Reads all states that a state includes; finds circles. */
  #visit(name: string, at: SourcePosition | undefined, path: readonly string[], problems: Problems): void {
    if (path.includes(name)) {
      const circle = [...path.slice(path.indexOf(name)), name].join(" → ");
      problems.add({ code: "STATE_INCLUDE_CYCLE", message: `states include each other: ${circle}`, at });
      return;
    }
    const known = this.#partlyRead.get(name);
    if (known) return problems.add(...known.problems);
    const { state, problems: own } = this.#one(name, at);
    problems.add(...own);
    for (const step of state?.steps ?? [])
      if (step.kind === "include") this.#visit(step.include, step.includeAt, [...path, name], problems);
  }

  #one(name: string, at: SourcePosition | undefined): StateWithProblems {
    const known = this.#read.get(name);
    if (known) return known;
    const found = findIn(this.#folders, `${name}${ENDING}`);
    if (found === undefined) return { problems: [this.#notFound(name, at)] };
    const read = readOne(name, found);
    this.#read.set(name, read);
    return read;
  }

  #notFound(name: string, at: SourcePosition | undefined): Problem {
    const names = [...listIn(this.#folders, [ENDING]).keys()].map((file) => file.slice(0, -ENDING.length));
    const hint = suggestHint(name.replace(/\.yaml$/, ""), names, "kcore state list shows them all");
    return { code: "STATE_NOT_FOUND", message: `no state “${name}”`, at, hint };
  }
}

function readOne(name: string, found: FoundFile): StateWithProblems {
  try {
    return readState(name, found, sourceOf(found));
  } catch (error) {
    if (!(error instanceof KcoreError)) throw error;
    return { problems: error.problems };
  }
}

function sourceOf({ path, shown, folder }: FoundFile): ReturnType<typeof readSource> {
  const check: ((name: string, stats: Stats) => void) | undefined = folder.check;
  const source = readSource(path, { name: shown, ...omitUndefined({ check }) });
  const problems = new Problems();
  checkPlaces(source, problems);
  problems.throwIfAny();
  return source;
}
