import { join } from "node:path";
import { checkOf, trustOfProcess } from "#engine/project/project.ts";
import type { Folder } from "#engine/project/folders.ts";
import { shippedRoot } from "#engine/project/shipped.ts";
import { listOrchestrations as namesOf, loadOrchestration } from "#engine/orchestrate/load-orchestration.ts";
import { KcoreError } from "#errors/problem.ts";
import type { CommonFlags } from "../options.ts";
import { findProject } from "../project/find-project.ts";
import { formatTable } from "../terminal/format-table.ts";

/** Where files of one kind are looked for: the project, then what kcore ships. Without a project only the latter. */
export function foldersOf(kind: "orchestrate" | "states", project: string | undefined): readonly Folder[] {
  const shipped: Folder = { path: join(shippedRoot(), kind), shown: kind, origin: "shipped" };
  if (project === undefined) return [shipped];
  return [
    { path: join(project, kind), shown: kind, origin: "project", check: checkOf(trustOfProcess(process.env)) },
    shipped,
  ];
}

/** The project, if there is one: lists work without. */
export function projectIfAny(given: string | undefined): string | undefined {
  try {
    return findProject(given);
  } catch (error) {
    if (given === undefined && error instanceof KcoreError && error.problems[0]?.code === "PROJECT_NOT_FOUND")
      return undefined;
    throw error;
  }
}

/** Prints every orchestration with its description, or with what is wrong with it. */
export function listOrchestrations({ project, output }: CommonFlags & { readonly output: string }): void {
  const folders = foldersOf("orchestrate", projectIfAny(project));
  const found = [...namesOf(folders)].map(([name, origin]) => ({ name, origin, ...describe(name, folders) }));
  if (output === "json") process.stdout.write(`${JSON.stringify(found, undefined, 2)}\n`);
  else
    process.stdout.write(
      formatTable(
        ["NAME", "FROM", "PARAMETERS", "DESCRIPTION"],
        found.map(({ name, origin, params, description }) => [name, origin, params.join(","), description]),
      ),
    );
}

function describe(
  name: string,
  folders: readonly Folder[],
): { readonly params: readonly string[]; readonly description: string } {
  try {
    const { description = "", params } = loadOrchestration(name, folders);
    return { params: [...params.keys()], description };
  } catch (error) {
    if (!(error instanceof KcoreError)) throw error;
    return { params: [], description: `cannot be read: ${error.problems[0]?.message ?? ""}` };
  }
}
