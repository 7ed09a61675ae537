import { cleanLine } from "#engine/events/clean.ts";
import { visible } from "#errors/draw.ts";
import { detectTheme, type TextRole } from "#tui/ink/theme.ts";
import { formatTable } from "../terminal/format-table.ts";
import { wantsColor } from "../terminal/report-failure.ts";
import { groupRows, isBad, type CheckGroup, type CheckResult, type CheckRow } from "./check-rows.ts";

const colours: Readonly<Record<CheckResult, TextRole>> = {
  ok: "ok",
  warning: "warning",
  failed: "failed",
  unreachable: "failed",
  interrupted: "failed",
  unknown: "warning",
  skipped: "plain",
};
/** Names of nodes in a cell; further ones are counted. */
const mostNames = 6;

/** The table of all checks that were made, then the remedies of those that do not hold, then their numbers. */
export function drawChecks(rows: readonly CheckRow[]): string {
  const made = rows.filter(({ result }) => result !== "skipped");
  const groups = groupRows(made);
  const { paint } = detectTheme(process.env, process.stdout.isTTY ? process.stdout : undefined);
  const isColoured = wantsColor(process.stdout);
  const table = formatTable(
    ["RESULT", "TOPIC", "CHECK", "NODES", "FOUND"],
    groups.map((group) => [group.result, group.topic, group.check, namesOf(group.nodes), group.found ?? ""]),
    isColoured
      ? { paint: (text, column) => (column === 0 ? paint(colours[text as CheckResult] ?? "plain", text) : text) }
      : {},
  );
  const mend = groups.filter(({ result }) => result !== "ok").map(drawRemedy);
  return [table, ...mend, `\n${countRows(rows)}\n`].join("");
}

/** `n1, n2 and 4 more`. */
export function namesOf(nodes: readonly string[]): string {
  const shown = nodes.slice(0, mostNames).join(", ");
  return nodes.length > mostNames ? `${shown} and ${nodes.length - mostNames} more` : shown;
}

function drawRemedy({ topic, check, nodes, detail = "", remedy }: CheckGroup): string {
  const lines = [
    ...linesOf(detail).map((line) => `  | ${line}`),
    ...(remedy === undefined ? [] : [`  to mend it: ${cleanLine(remedy)}`]),
  ];
  if (lines.length === 0) return "";
  return `\n${cleanLine(`${topic}: ${check}  (${namesOf(nodes)})`)}\n${lines.join("\n")}\n`;
}

/** The last lines of a detail that people read; lines with the wanted value say nothing that the table has not. */
export function linesOf(detail: string, most = 8): readonly string[] {
  return visible(detail)
    .split("\n")
    .filter((line) => line.trim() !== "" && !/: wanted (?:ok|holds), found /.test(line))
    .slice(-most);
}

function countRows(rows: readonly CheckRow[]): string {
  const count = (isMeant: (row: CheckRow) => boolean): number => rows.filter(isMeant).length;
  const made = count(({ result }) => result !== "skipped");
  const parts = [
    [count(({ result }) => result === "ok"), "ok"],
    [count(({ result }) => result === "warning"), "to be warned of"],
    [count(isBad), "failed"],
    [count(({ result }) => result === "unknown"), "not known"],
    [rows.length - made, "left out"],
  ] as const;
  const said = parts.flatMap(([number, word]) => (number === 0 ? [] : `${number} ${word}`)).join(", ");
  return `${rows.length} checks: ${said}`;
}
