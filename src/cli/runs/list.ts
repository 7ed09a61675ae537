import { listRunIds, runFolder } from "#engine/run/run-folder.ts";
import { formatDuration } from "#tui/line.ts";
import type { CommonFlags } from "../options.ts";
import { findProject } from "../project/find-project.ts";
import { formatResult } from "../terminal/format-result.ts";
import { formatTable } from "../terminal/format-table.ts";
import { glanceAtRun, type RunGlance } from "./glance.ts";

export interface ListFlags extends CommonFlags {
  readonly output: "table" | "json";
  readonly limit: number;
  readonly state?: readonly string[];
}

/** `kcore runs list`: the newest last, and what does not fit into the terminal's width is cut. */
export async function listRuns({ project, output, limit, state }: ListFlags): Promise<void> {
  const found = await findRuns(findProject(project), limit, state);
  const none = state ? `no run is ${state.join(" or ")}\n` : "no runs yet\n";
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

async function findRuns(project: string, limit: number, states: readonly string[] | undefined): Promise<RunGlance[]> {
  const found: RunGlance[] = [];
  // From the newest on, so that a filter looks at no more than it must.
  for (const id of (await listRunIds(project)).reverse()) {
    if (found.length >= limit) break;
    const glance = await glanceAtRun(runFolder(project, id)).catch(() => undefined);
    if (glance && (!states || states.includes(glance.state))) found.push(glance);
  }
  return found.reverse();
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
