import type { Stats } from "node:fs";
import { KcoreError, type SourcePosition } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import type { Trust } from "#engine/project/project.ts";
import { findIn, type Folder, foldersOf, type FoundFile, listIn } from "#engine/project/folders.ts";
import { Problems } from "#engine/yaml/problems.ts";
import { readSource } from "#engine/yaml/read.ts";
import { openTemplates, type Templates } from "#engine/expressions/template.ts";
import { defined } from "#optional/defined.ts";
import { readFiles, type Files } from "./state-files.ts";
import { readState, type State } from "./state.ts";

/** A state as `kcore state list` shows it. */
export interface StateOutline {
  readonly name: string;
  readonly description?: string;
  readonly origin: Folder["origin"];
  /** `states/kcore/controller.yaml` */
  readonly shown: string;
}

/** The states, templates and files of a project and the shipped ones; each file is read once. */
export interface States {
  readonly templates: Templates;
  readonly files: Files;
  /** All states by name; one that cannot be read is listed without its description. */
  list(): readonly StateOutline[];
  /**
   * A state and, checked with it, all that it includes.
   * @throws KcoreError STATE_NOT_FOUND at `at`, STATE_INCLUDE_CYCLE, and every problem of the files.
   */
  load(name: string, at?: SourcePosition): State;
}

/** The states of a project first, then the shipped ones. `trust`: whose files of the project are believed (S-20). */
export function statesOf(places: {
  readonly project?: string | undefined;
  /** The package's own folder. */
  readonly shipped: string;
  readonly trust?: Trust;
}): States {
  const [states, templates, files] = [
    foldersOf("states", places),
    foldersOf("templates", places),
    foldersOf(".", places),
  ];
  return new OpenStates(states, openTemplates(templates), readFiles(files));
}

const ENDING = ".yaml";

class OpenStates implements States {
  readonly templates: Templates;
  readonly files: Files;
  readonly #folders: readonly Folder[];
  readonly #read = new Map<string, State | KcoreError>();
  readonly #whole = new Set<string>();

  constructor(folders: readonly Folder[], templates: Templates, files: Files) {
    this.#folders = folders;
    this.templates = templates;
    this.files = files;
  }

  list(): readonly StateOutline[] {
    return [...listIn(this.#folders, [ENDING])].map(([file, { shown, folder }]) => {
      const name = file.slice(0, -ENDING.length);
      const description = new Problems().attempt(() => this.#one(name, undefined))?.description;
      return { name, origin: folder.origin, shown, ...defined({ description }) };
    });
  }

  load(name: string, at?: SourcePosition): State {
    if (!this.#whole.has(name)) {
      const problems = new Problems();
      this.#visit(name, at, [], problems);
      problems.throwIfAny();
      this.#whole.add(name);
    }
    return this.#one(name, at);
  }

  /** Reads what a state includes, down to the last; finds circles. */
  #visit(name: string, at: SourcePosition | undefined, path: readonly string[], problems: Problems): void {
    if (path.includes(name)) {
      const circle = [...path.slice(path.indexOf(name)), name].join(" → ");
      problems.add({ code: "STATE_INCLUDE_CYCLE", message: `states include each other: ${circle}`, at });
      return;
    }
    if (this.#whole.has(name)) return;
    const state = problems.attempt(() => this.#one(name, at));
    for (const step of state?.steps ?? [])
      if (step.kind === "include") this.#visit(step.include, step.includeAt, [...path, name], problems);
  }

  #one(name: string, at: SourcePosition | undefined): State {
    const known = this.#read.get(name) ?? this.#readAnew(name, at);
    if (known instanceof KcoreError) throw known;
    return known;
  }

  #readAnew(name: string, at: SourcePosition | undefined): State {
    const found = findIn(this.#folders, `${name}${ENDING}`);
    if (found === undefined) throw this.#notFound(name, at);
    try {
      const state = readState(name, found, sourceOf(found));
      this.#read.set(name, state);
      return state;
    } catch (error) {
      if (error instanceof KcoreError) this.#read.set(name, error);
      throw error;
    }
  }

  #notFound(name: string, at: SourcePosition | undefined): KcoreError {
    const names = [...listIn(this.#folders, [ENDING]).keys()].map((file) => file.slice(0, -ENDING.length));
    const hint = suggestHint(name.replace(/\.yaml$/, ""), names, "kcore state list shows them all");
    return new KcoreError({
      code: "STATE_NOT_FOUND",
      message: `no state “${name}”`,
      at,
      hint,
    });
  }
}

function sourceOf({ path, shown, folder }: FoundFile): ReturnType<typeof readSource> {
  const check: ((name: string, stats: Stats) => void) | undefined = folder.check;
  return readSource(path, { name: shown, ...defined({ check }) });
}
