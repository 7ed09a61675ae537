import { formatDuration, since } from "#base/units.ts";
import { detectTheme, type TextRole } from "#tui/ink/theme.ts";
import { openQuestion, describeQuestion } from "#tui/questions.ts";
import { cleanLine } from "#engine/events/clean.ts";
import type { CommonFlags } from "../options.ts";
import { findProject } from "../project/find-project.ts";
import { formatTable } from "../terminal/format-table.ts";
import { wantsColor } from "../terminal/report-failure.ts";
import { findRuns, type RunSummary } from "../records/run-summary.ts";
import type { RunFilter } from "../records/run-summary.ts";
import { printResult } from "../terminal/format-result.ts";

export interface ListRunsFlags extends CommonFlags, RunFilter {
  readonly output: "table" | "json";
}

/** `kcore runs list`: prints runs, the newest last. */
export async function listRuns({ project, output, ...filter }: ListRunsFlags): Promise<void> {
  const { state, failed, node, since } = filter;
  const found = await findRuns(findProject(project), filter);
  const none = (state ?? failed ?? node ?? since) ? "no such run\n" : "no runs yet\n";
  printResult(found.map(runAsData), output, () => (found.length === 0 ? none : drawRuns(found, Date.now())));
}

/** The colours of states; other states have none. */
const stateColours: Readonly<Record<string, TextRole>> = {
  done: "ok",
  running: "running",
  waiting: "warning",
  failed: "failed",
  died: "failed",
  unreachable: "failed",
  refused: "warning",
  interrupted: "warning",
};

/** The table of runs, which marks each dry run, and below it the questions of waiting runs. */
export function drawRuns(found: readonly RunSummary[], now: number, isColoured = wantsColor(process.stdout)): string {
  const rows = found.map(({ folder, header, nodes, started, milliseconds, state: is }) => [
    folder.id,
    header.request.dryRun ? `${is} (dry run)` : is,
    since(new Date(started).toISOString(), now),
    formatDuration(milliseconds),
    String(nodes.length),
    header.who.replace(/@.*/, ""),
    header.request.command.replace(/^kcore /, ""),
  ]);
  const { paint } = detectTheme(process.env, process.stdout.isTTY ? process.stdout : undefined);
  const painted = (text: string, column: number) =>
    column === 1 ? paint(stateColours[/^\w*/.exec(text)?.[0] ?? ""] ?? "plain", text) : text;
  const questions = found.flatMap(({ folder: { id }, question }) =>
    question ? [`${cleanLine(`${id} ${describeQuestion(openQuestion(question, id))}`)}\n`] : [],
  );
  const table = formatTable(
    ["ID", "STATE", "AGE", "TIME", "NODES", "WHO", "COMMAND"],
    rows,
    isColoured ? { paint: painted } : {},
  );
  return [table, ...questions].join("");
}

function runAsData({ folder, header, state, started, milliseconds, question, nodes, exitCode }: RunSummary): object {
  return {
    id: folder.id,
    state,
    started: new Date(started).toISOString(),
    milliseconds,
    who: header.who,
    command: header.request.command,
    dryRun: header.request.dryRun,
    revision: header.revision,
    dirty: header.dirty,
    nodes,
    exitCode,
    ...(question && { question: openQuestion(question, folder.id) }),
  };
}
