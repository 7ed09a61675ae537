import { KcoreError, type SourcePosition } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import type { Secret } from "#engine/step/secret.ts";
import { type Template, templateOfFile } from "./expression.ts";
import { SourceFile } from "#engine/yaml/file.ts";
import { findIn, type Folder, listIn } from "#engine/project/folders.ts";
import { Interpreter } from "./interpret.ts";
import { listNames } from "./members.ts";
import { readBytes } from "#engine/yaml/regular-file.ts";
import { referencesOfTemplate, type References } from "./references.ts";
import { decodeSource } from "#engine/yaml/scan.ts";
import type { Scope } from "./scope.ts";

/** The files under `templates/` of the project, its packs and kcore. */
export interface Templates {
  /**
   * The text of a template; a Secret if a secret went into it. `at`: the place that names the template, for problems.
   * @throws KcoreError TEMPLATE_NOT_FOUND, or with the place in the template file; UnknownValue
   */
  render(name: string, scope: Scope, at?: SourcePosition): string | Secret;
  /** The references in the template and in the templates that it includes. @throws KcoreError */
  references(name: string, at?: SourcePosition): References;
}

/** Opens the templates of the given folders; an earlier folder wins. Each file is read and parsed once. */
export function openTemplates(folders: readonly Folder[]): Templates {
  const templates = new Map<string, Template>();
  const references = new Map<string, References>();
  const load = (name: string, at?: SourcePosition): Template => {
    const known = templates.get(name);
    if (known !== undefined) return known;
    const found = findIn(folders, name);
    if (found === undefined) throw notFound(folders, name, at);
    const { shown, path, folder } = found;
    const bytes = readBytes(path, { name: shown, ...(folder.check && { check: folder.check }) });
    const template = templateOfFile(new SourceFile(shown, decodeSource(shown, bytes)));
    templates.set(name, template);
    return template;
  };
  return {
    render: (name, scope, at) => new Interpreter(load(name, at), { partial: load }).text(scope),
    references: (name, at) => {
      const known = references.get(name) ?? referencesOfTemplate(load(name, at), (partial) => load(partial, at));
      references.set(name, known);
      return known;
    },
  };
}

function notFound(folders: readonly Folder[], name: string, at: SourcePosition | undefined): KcoreError {
  const names = [...listIn(folders, [""]).keys()];
  const hint = suggestHint(name, names, listNames(names));
  return new KcoreError({
    code: "TEMPLATE_NOT_FOUND",
    message: `no template “${name}”`,
    at,
    hint,
  });
}
