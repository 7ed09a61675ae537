import { formatDuration } from "#tui/line.ts";
import type { CommonFlags } from "../options.ts";
import { findProject } from "../project/find-project.ts";
import { formatResult } from "../terminal/format-result.ts";
import { formatTable } from "../terminal/format-table.ts";
import { findRuns } from "./find-runs.ts";
import type { RunGlance } from "./glance.ts";
import type { RunFilter } from "./run-filter.ts";

export interface ListFlags extends CommonFlags, RunFilter {
  readonly output: "table" | "json";
}

/** `kcore runs list`: the newest last, and what does not fit into the terminal's width is cut. */
export async function listRuns({ project, output, ...filter }: ListFlags): Promise<void> {
  const { state, failed, node, since } = filter;
  const found = await findRuns(findProject(project), filter);
  const none = (state ?? failed ?? node ?? since) ? "no such run\n" : "no runs yet\n";
  process.stdout.write(formatResult(found.map(plainOf), output, () => (found.length === 0 ? none : draw(found))));
}

function draw(found: readonly RunGlance[]): string {
  const rows = found.map(({ folder, header, nodes, milliseconds, state: is }) => [
    folder.id,
    is,
    formatDuration(milliseconds),
    String(nodes.length),
    header.who.replace(/@.*/, ""),
    header.request.command.replace(/^kcore /, ""),
  ]);
  const table = formatTable(["ID", "STATE", "TIME", "NODES", "WHO", "COMMAND"], rows);
  return process.stdout.isTTY ? cut(table, process.stdout.columns || 80) : table;
}

function plainOf({ folder, header, state, milliseconds, nodes, exitCode }: RunGlance): object {
  return {
    id: folder.id,
    state,
    started: new Date(header.created).toISOString(),
    milliseconds,
    who: header.who,
    command: header.request.command,
    dryRun: header.request.dryRun,
    revision: header.revision,
    dirty: header.dirty,
    nodes,
    exitCode,
  };
}

function cut(table: string, columns: number): string {
  return table.replaceAll(/^.*$/gm, (line) => (line.length > columns ? `${line.slice(0, columns - 1)}…` : line));
}
