import { basename } from "node:path";
import { KcoreError } from "#errors/problem.ts";
import { type FoundFile, foldersOf, listIn } from "#engine/project/folders.ts";
import type { Trust } from "#engine/project/project.ts";
import type { ModuleDefinition } from "#engine/step/define.ts";
import { readSource } from "#engine/yaml/read.ts";
import { type OwnModule, readOwnModule } from "./own-module.ts";

type Modules = ReadonlyMap<string, () => Promise<ModuleDefinition>>;

/** The modules that a project and its packs define, by name. */
export interface OwnModules {
  readonly names: readonly string[];
  /** The module of this name. @throws KcoreError with every problem of its file; STATE_MODULE_UNKNOWN */
  load(name: string): OwnModule;
  /** Like `load`. @throws KcoreError also if a shipped module has the name of an own one */
  loadBeside(shipped: Modules, name: string): OwnModule;
  /** The shipped modules and the project's. Loading a name that both have is an error. */
  beside(shipped: Modules): Modules;
}

const ending = ".yaml";
const pattern = /^[a-z][a-zA-Z0-9]*\.[a-z][A-Za-z0-9_]*$/;

/**
 * The modules under `modules/` of the project and of its packs; a file's name is the module's: `modules/site.motd.yaml`. Those of a pack
 * begin with its name.
 */
export function openOwnModules(places: {
  readonly project?: string | undefined;
  readonly shipped: string;
  readonly trust?: Trust;
}): OwnModules {
  const folders = foldersOf("modules", places).filter(({ origin }) => origin !== "shipped");
  const files = new Map<string, FoundFile>();
  for (const [file, found] of listIn(folders, [ending])) {
    const name = basename(file).slice(0, -ending.length);
    // The project's own modules take precedence over those of packs.
    if (found.folder.origin === "project" || !files.has(name)) files.set(name, found);
  }
  const loaded = new Map<string, OwnModule>();
  const load = (name: string): OwnModule => {
    const known = loaded.get(name) ?? readNamed(name, files.get(name));
    loaded.set(name, known);
    return known;
  };
  const loadBeside = (shipped: Modules, name: string): OwnModule => {
    const found = files.get(name);
    if (found !== undefined && shipped.has(name)) throw nameTaken(found.shown);
    return load(name);
  };
  return {
    names: [...files.keys()],
    load,
    loadBeside,
    beside: (shipped) =>
      new Map([
        ...shipped,
        ...[...files.keys()].map((name) => [name, async () => loadBeside(shipped, name).module] as const),
      ]),
  };
}

function readNamed(name: string, found: FoundFile | undefined): OwnModule {
  if (found === undefined)
    throw new KcoreError({ code: "STATE_MODULE_UNKNOWN", message: `the project has no module “${name}”` });
  const { path, shown, folder } = found;
  const first = folder.prefix?.replace("/", ".") ?? "";
  if (!pattern.test(name) || !name.startsWith(first))
    throw new KcoreError({
      code: "MODULE_INVALID",
      message: `${shown} cannot be a module's file`,
      hint: `a module is named as a thing and what it is kept: modules/${first === "" ? "site." : first}motd.yaml`,
    });
  return readOwnModule(name, readSource(path, { name: shown, ...(folder.check && { check: folder.check }) }));
}

function nameTaken(shown: string): KcoreError {
  return new KcoreError({
    code: "MODULE_INVALID",
    message: `${shown} has the name of a module that is shipped`,
    hint: "give it another name",
  });
}
