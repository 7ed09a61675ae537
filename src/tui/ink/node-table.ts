import { formatDuration, shortDuration } from "#base/units.ts";
import { causeLine } from "../cause-line.ts";
import type { NodeRow } from "../node-row.ts";
import { quietOf, type Quiet } from "../work-item.ts";
import type { Filter, Sort } from "../row-order.ts";
import { stateMark, stateRole, stateLabel } from "./marks.ts";
import type { SceneProps } from "./scene.ts";
import { type RowWindow, ruled } from "./blocks.ts";
import { headingLine, placeColumns, rowLines, type ScreenColumn } from "./table.ts";
import { commonStart, tellApart } from "./tell-apart.ts";
import { widthOf } from "#base/text.ts";
import { fit, lineWidth, oneLine, span, type Line, type Span } from "./text.ts";
import type { Glyphs, TextRole, Theme } from "./theme.ts";

interface NodesProps extends Pick<SceneProps, "theme" | "now" | "usual"> {
  readonly rows: readonly NodeRow[];
  readonly window: RowWindow;
  readonly selected: number;
  readonly width: number;
  /** The sort order; role or datacenter has a column while the rows are sorted by it. */
  readonly sort: Sort;
  /** The reason why an idle node waits, for its row. */
  readonly waits?: (name: string) => string | undefined;
}

/** The heading and the rows of the window. `common`: the common start of all names if names are cut, else empty. */
export function nodeLines({ rows, window, selected, theme, width, now, usual, sort, waits }: NodesProps): {
  readonly lines: readonly Line[];
  readonly common: string;
} {
  const { glyphs } = theme;
  const shown = rows.slice(window.top, window.end);
  const placeWith = (milestones: "column" | "step") =>
    placeColumns(columnsFor({ rows, shown, glyphs, now, usual, sort, waits, milestones }), width - 4);
  const wide = placeWith("column");
  const placed = wide.some(({ title }) => title === "MILESTONE") ? wide : placeWith("step");
  const [names] = placed;
  const areCut = names !== undefined && names.columns < (names.max ?? 0);
  const lines = [
    [span("    "), ...headingLine(placed, glyphs)],
    ...rowLines(placed, rows, { window, selected, glyphs, name: "NODE", mark: (row) => stateMark(row, glyphs, now) }),
  ];
  const own = areCut ? rows.filter(({ isBastion }) => !isBastion).map(({ name }) => name) : [];
  return { lines, common: commonStart(own) };
}

interface ColumnOptions {
  readonly rows: readonly NodeRow[];
  readonly shown: readonly NodeRow[];
  readonly glyphs: Glyphs;
  readonly now: number;
  readonly usual: ReadonlyMap<string, number> | undefined;
  readonly sort: Sort;
  readonly waits: NodesProps["waits"];
  /** Whether milestones have a column, or take the place of a step. */
  readonly milestones: "column" | "step";
}

function columnsFor(options: ColumnOptions): readonly ScreenColumn<NodeRow>[] {
  const { rows, shown, glyphs, now, sort, milestones } = options;
  // Measured over all rows: scrolling must not change the names.
  const longest = rows.reduce((most, { name }) => Math.max(most, widthOf(oneLine(name))), 6);
  const names = rows.map(({ name }) => name);
  let labels: ReadonlyMap<string, string> | undefined;
  const hasMilestones = milestones === "column" && rows.some(({ milestone }) => milestone !== undefined);
  return [
    {
      title: "NODE",
      width: Math.min(longest, 12),
      max: longest,
      first: true,
      drop: 0,
      cell: ({ name, rank }, width) => {
        labels ??= tellApart(names, width, glyphs);
        return [span(labels.get(name) ?? name, rank === 0 ? "failed" : rank === 1 ? "strong" : "plain")];
      },
    },
    ...kindColumn(rows, sort),
    {
      title: "STATE",
      width: rows.some(({ state }) => state === "asking") ? 15 : 12,
      drop: 5,
      cell: (row) => [span(stateLabel(row), stateRole(row.state))],
    },
    { title: "STEP", width: 24, grow: 5, max: 76, drop: 0, cell: (row, width) => stepCell(row, width, options) },
    ...(hasMilestones
      ? [
          {
            title: "MILESTONE",
            width: 12,
            grow: 1,
            max: 18,
            drop: 8,
            cell: ({ milestone = "" }: NodeRow) => [span(milestone, "accent")],
          } as const,
        ]
      : []),
    { title: "", width: 10, drop: 7, cell: (row, width) => barCell(row, width, glyphs) },
    {
      title: "STEPS",
      width: Math.max(6, ...shown.map((row) => stepsText(row).length)),
      align: "right",
      drop: 3,
      cell: (row) => [span(stepsText(row), "muted")],
    },
    ...(rows.some(({ unknown }) => unknown > 0)
      ? [
          {
            title: "UNKN",
            width: 4,
            align: "right",
            drop: 2,
            cell: ({ unknown }: NodeRow) => [span(String(unknown), unknown === 0 ? "muted" : "warning")],
          } as const,
        ]
      : []),
    { title: "CHG", width: 3, align: "right", drop: 2, cell: ({ changed }) => countCell(changed, "changed") },
    { title: "FAIL", width: 4, align: "right", drop: 2, cell: ({ failed }) => countCell(failed, "failed") },
    { title: "TIME", width: 6, align: "right", drop: 4, cell: (row) => [span(timeText(row, now), "muted")] },
  ];
}

/** The column of the role or datacenter that rows are sorted by; no other column shows it. */
function kindColumn(rows: readonly NodeRow[], sort: Sort): readonly ScreenColumn<NodeRow>[] {
  if (sort !== "role" && sort !== "dc") return [];
  const text = (row: NodeRow) => (sort === "role" ? row.roles.join(",") : row.dc);
  const width = Math.min(
    16,
    rows.reduce((most, row) => Math.max(most, widthOf(oneLine(text(row)))), 4),
  );
  return [{ title: sort === "role" ? "ROLE" : "DC", width, drop: 4, cell: (row) => [span(text(row), "accent")] }];
}

/** Ended and planned steps: `16/60`, with a `+` if more may come; empty without planned steps. */
export function stepsText({ ended, planned, isOpen }: Pick<NodeRow, "ended" | "planned" | "isOpen">): string {
  return planned === 0 ? "" : `${ended}/${planned}${isOpen ? "+" : ""}`;
}

function countCell(count: number, role: "changed" | "failed"): Line {
  return [count === 0 ? span("0", "muted") : span(String(count), role)];
}

function timeText({ time, state }: NodeRow, now: number): string {
  const milliseconds = time(now);
  if (milliseconds === undefined || state === "pending" || state === "not-started") return "";
  return shortDuration(milliseconds);
}

/** The node's present work, or the reason of its wait. The marker of a quiet step always fits. */
function stepCell(row: NodeRow, width: number, { glyphs, now, usual, milestones, waits }: ColumnOptions): Line {
  const { item, reason, state, sending } = row;
  if (sending !== undefined && state === "running") return [span(sending)];
  if (item?.outcome === undefined && item !== undefined && state === "running") {
    const marker = quietSpans(quietOf(item, now, usual), glyphs, now);
    const running = now - item.startedAt;
    const time = running >= 1000 && marker.length === 0 ? [span(` ${shortDuration(running)}`, "muted")] : [];
    const end = [...marker, ...time];
    const room = width - lineWidth(end);
    const note = item.note === undefined ? "" : `: ${item.note}`;
    return [span(fit(`${item.title}${note}`, room, glyphs)), ...end];
  }
  if (item?.outcome === "failed") {
    const why = causeLine(item);
    if (why === undefined) return [span(item.title, "failed")];
    // Without room for both, only the cause is shown: the step's name stands below as well.
    const room = width - widthOf(oneLine(why)) - 2;
    const cause = span(room < -2 ? fitCause(why, width, glyphs) : why);
    return [...(room >= 6 ? [span(fit(item.title, room, glyphs), "failed"), span(": ")] : []), cause];
  }
  if (reason !== undefined) return [span(reason, row.rank === 0 ? "plain" : "muted")];
  const waiting = state === "pending" || state === "idle" ? waits?.(row.name) : undefined;
  if (waiting !== undefined) return [span(waiting, "muted")];
  if (state === "pending" || state === "done" || state === "idle") {
    const { milestone } = row;
    return milestone === undefined || milestones === "column" ? [] : [span(`milestone ${milestone}`, "muted")];
  }
  return [span(item?.title ?? "", "muted")];
}

/** A cause in at most `width` columns; a cut keeps its exit code. */
function fitCause(cause: string, width: number, glyphs: Glyphs): string {
  const [code = ""] = / \((?:exit|signal) \d+\)$/.exec(cause) ?? [];
  return `${fit(cause.slice(0, cause.length - code.length), width - code.length, glyphs)}${code}`;
}

/** The marker of a quiet step: a shape, a word and a time; empty for any other step. */
export function quietSpans(quiet: Quiet | undefined, glyphs: Glyphs, now: number): readonly Span[] {
  if (quiet === undefined) return [];
  const text =
    quiet.kind === "slow"
      ? `slow, usually ${shortDuration(quiet.usual)}`
      : `no output for ${formatDuration(now - quiet.since)}`;
  return [span(`  ${glyphs.warning} ${text}`, "warning")];
}

function barCell({ progress, rank, state }: NodeRow, width: number, glyphs: Glyphs): Line {
  if (state === "pending" || state === "not-started") return [span(glyphs.barLeft.repeat(width), "muted")];
  const done = Math.max(0, Math.min(width, Math.round(progress * width)));
  return [
    span(glyphs.barDone.repeat(done), rank === 0 ? "failed" : state === "done" ? "ok" : "running"),
    span(glyphs.barLeft.repeat(width - done), "muted"),
  ];
}

export interface CountsProps {
  readonly all: readonly NodeRow[];
  readonly shown: number;
  readonly filter: Filter;
  readonly search: string;
  readonly sort: Sort;
  /** The common start of all names, shown once where names are cut. */
  readonly common: string;
  readonly theme: Theme;
  readonly width: number;
  /** The visible part of the nodes; absent: all are visible. */
  readonly window?: RowWindow;
}

/** The rule above the nodes: counts by state, and the filter. On a narrow terminal the states are marks without words. */
export function countsLine({ all, shown, filter, search, sort, common, theme, width, window }: CountsProps): Line {
  const { glyphs } = theme;
  const filtered = [filter === "all" ? "" : filter, search === "" ? "" : `“${search}”`].filter((text) => text !== "");
  const position = window ? `${window.top + 1}–${window.end} of ${shown}` : String(shown);
  const only = filtered.length === 0 ? [] : [span(" only "), span(filtered.join(" and "), "accent"), span(":")];
  const by = sort === "state" ? [] : [span(" by "), span(`${sort} `, "accent")];
  const where = only.length === 0 && !window ? [] : [span(` ${position} `)];
  const parts = [...only, ...where, ...by];
  const end = parts.length === 0 ? [] : [...parts, span(glyphs.rule, "muted")];
  const nodes = all.filter(({ isBastion }) => !isBastion);
  const start = common === "" ? [] : [span(` ${common}${glyphs.ellipsis}`, "muted")];
  const tries = [countSpans(nodes, start, glyphs, true), countSpans(nodes, [], glyphs, true)];
  const fitting = tries.find((counts) => lineWidth(counts) + lineWidth(end) <= width);
  return ruled(fitting ?? countSpans(nodes, [], glyphs, false), end, width, glyphs);
}

function countSpans(nodes: readonly NodeRow[], start: Line, glyphs: Glyphs, hasWords: boolean): Line {
  const counts: readonly (readonly [test: (row: NodeRow) => boolean, mark: string, word: string, role: TextRole])[] = [
    [({ state }) => state === "failed", glyphs.failed, "failed", "failed"],
    [({ state }) => state === "unreachable", glyphs.failed, "unreachable", "failed"],
    [({ rank }) => rank === 1, glyphs.running[0] ?? "", "active", "running"],
    [({ rank }) => rank === 2, glyphs.pending, "waiting", "muted"],
    [({ state }) => state === "done", glyphs.ok, "done", "ok"],
    [({ state }) => state === "interrupted", glyphs.interrupted, "interrupted", "warning"],
    [({ state }) => state === "unfinished", glyphs.interrupted, "not finished", "warning"],
    [({ state }) => state === "not-started", glyphs.skipped, "not started", "muted"],
  ];
  return [
    span(`${glyphs.rule.repeat(2)} `, "muted"),
    span(nodes.length === 1 ? "1 node" : `${nodes.length} nodes`, "strong"),
    ...start,
    ...counts.flatMap(([test, mark, word, role]) => {
      const count = nodes.filter(test).length;
      return count === 0 ? [] : [span("  "), span(`${mark} ${count}${hasWords ? ` ${word}` : ""}`, role)];
    }),
    span(" "),
  ];
}
