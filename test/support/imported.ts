import { loadRoster } from "#engine/roster/load-roster.ts";
import { importRoster, type Imported, type Programs } from "#engine/roster/import/import.ts";
import type { InventoryList } from "#engine/roster/import/ansible-list.ts";
import { askSsh } from "#engine/roster/import/programs.ts";
import type { Format } from "#engine/roster/import/guess.ts";
import type { Roster } from "#engine/roster/roster.ts";
import { inProject } from "./in-project.ts";

/** The result of an import, loaded as a roster. */
export interface ImportedRoster {
  readonly roster: Roster;
  readonly text: string;
  readonly formats: readonly Format[];
  readonly ownReader: Imported["ownReader"];
  /** The parts that were left out, as `LINE WHAT: WHY`; as `FILE:LINE WHAT: WHY` for any file but the first. */
  readonly leftOut: readonly string[];
}

/**
 * Imports texts beside an existing roster (`there`), and loads the result. `from`: the format; absent: it is guessed.
 * `beside`: path → text of included files. `answer`: the output of `ansible-inventory --list`, with `--export` as `layers`
 * and without as `values`; absent: Ansible is not installed. `hasVariables`: group_vars or host_vars lie beside the files.
 */
export function imported(
  files: string | Readonly<Record<string, string>>,
  {
    from,
    there = "nodes: {}\n",
    beside = {},
    user,
    answer,
    withSsh = true,
    hasVariables = false,
  }: {
    readonly from?: Format;
    readonly user?: string;
    readonly answer?: { readonly layers: InventoryList; readonly values?: InventoryList };
    readonly withSsh?: boolean;
    readonly hasVariables?: boolean;
    readonly there?: string;
    readonly beside?: Readonly<Record<string, string>>;
  } = {},
): ImportedRoster {
  const given = Object.entries(typeof files === "string" ? { given: files } : files);
  const texts = (path: string): readonly { file: string; text: string }[] =>
    Object.entries(beside).flatMap(([file, text]) => (file === path ? [{ file, text }] : []));
  const foreign = given.map(([file, content]) => ({ file, text: content, hasVariables }));
  const programs: Programs = {
    included: (pattern) => texts(pattern),
    askAnsible: () => answer && { values: answer.layers, ...answer, files: foreign, encrypted: [] },
    askSsh: withSsh ? askSsh : () => undefined,
  };
  return inProject({ "roster/there.yaml": there }, (project) => {
    const before = loadRoster(project);
    const { text, leftOut, formats, ownReader } = importRoster(foreign, {
      ...(from && { from }),
      ...(user !== undefined && { user }),
      programs,
      roster: before,
      groups: new Set([...there.matchAll(/^ {2}(\w+): \{ vars/gm)].map(([, name = ""]) => name)),
    });
    return {
      roster: loadRoster(project, { instead: { file: "roster/new.yaml", text }, home: "/home/op" }),
      text,
      formats,
      ownReader,
      leftOut: leftOut.map(({ at, what, why }) => {
        const place = at.file === given[0]?.[0] ? `${at.line}` : `${at.file}:${at.line}`;
        return `${place} ${what}: ${why}`;
      }),
    };
  });
}
