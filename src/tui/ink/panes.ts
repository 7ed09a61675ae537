import { nodeRows, type NodeRow, waitsFor } from "../node-row.ts";
import { orderRows } from "../row-order.ts";
import { mostImportant, type WorkItem } from "../work-item.ts";
import { glanceLines } from "./at-a-glance.ts";
import { besides, filled, ruled, titled, windowAround } from "./blocks.ts";
import { outputWidth, problemLines } from "./item-body.ts";
import { itemLines } from "./item-list.ts";
import { stateMark, stateRole, stateLabel } from "./marks.ts";
import { countsLine, nodeLines, stepsText } from "./node-table.ts";
import { isSamePlace, isSameStep, mostMatches, type OutputPlace } from "./output-pager.ts";
import { arrangeOverlay } from "./overlay.ts";
import type { Extent, Scene, SceneProps } from "./scene.ts";
import { freshUi, type RunUi } from "./run-ui.ts";
import { arrangeBody, type StepBody } from "./step-body.ts";
import { span, type Line } from "./text.ts";
import type { Theme } from "./theme.ts";

/** The large part of the view, and its state as the keys see it. */
export type Main = Omit<Scene, "model" | "replay" | "question" | "showsStages">;

/** The shown rows, the selected row, and the selected one of its steps. */
type RowChoice = Pick<Scene, "rows" | "selected" | "row" | "items" | "itemIndex" | "item">;

interface Area {
  readonly width: number;
  readonly height: number;
  /** Rows for the nodes and the selected node's work together. */
  readonly inner: number;
  /** The fewest of these rows that are for the selected node's work; 0: none. */
  readonly preview: number;
}

/** All nodes with the selected node's work; or one node with its steps; or an overlay. */
export function arrangeMain(props: SceneProps, width: number, height: number): Main {
  const inner = Math.max(1, height - 2);
  const preview = inner >= 10 ? Math.max(6, Math.floor(inner * 0.4)) : 0;
  const area = { width, height, inner, preview };
  const choice = chooseRow(props, inner - preview);
  const { pane, overlay } = props.ui;
  if (overlay !== undefined) return { ...choice, ...arrangeOverlay(props, width, height) };
  return {
    ...choice,
    ...(pane === "node" && choice.row ? paneOf(props, area, choice, choice.row) : nodesPane(props, area, choice)),
  };
}

function chooseRow({ model, ui, now }: SceneProps, height: number): RowChoice {
  const rows = orderRows(nodeRows(model), {
    filter: ui.filter,
    search: ui.search,
    sort: ui.sort,
    now,
    height,
    ...(ui.selected ? { held: ui.selected } : {}),
  });
  const chosen = ui.selected ? rows.findIndex(({ name }) => name === ui.selected?.name) : -1;
  const selected = chosen >= 0 ? chosen : rowToShow(rows);
  const row = rows[selected];
  const items = row?.items ?? [];
  const picked = ui.pane === "node" && ui.step !== undefined ? items.findIndex(({ key }) => key === ui.step) : -1;
  const itemIndex = picked >= 0 ? picked : Math.max(0, items.indexOf(mostImportant(items) as WorkItem));
  const item = items[itemIndex];
  return { rows, selected, items, itemIndex, ...(row ? { row } : {}), ...(item ? { item } : {}) };
}

type Pane = Pick<Main, "lines" | "ui" | "page">;

function paneOf(props: SceneProps, area: Area, choice: RowChoice, row: NodeRow): Pane {
  return props.ui.full && choice.item ? fullPane(props, area, row, choice.item) : nodePane(props, area, choice, row);
}

/** The texts of one step, over the whole pane. */
function fullPane(props: SceneProps, { width, height }: Area, row: NodeRow, item: WorkItem): Pane {
  const { ui, theme } = props;
  const body = stepBody(props, row, item, width, height - 1);
  const end = Math.min(body.count, body.top + body.room);
  const inSight = body.count > body.room ? [span(` ${body.top + 1}–${end} of ${body.count} `)] : [];
  const title = ruled(
    [
      span(`${theme.glyphs.rule.repeat(2)} `, "muted"),
      span(row.name, "title"),
      span(` ${theme.glyphs.pointer} `, "muted"),
      span(item.title, "strong"),
      span(" "),
    ],
    [...foundSpans(body), ...inSight, span(theme.glyphs.rule, "muted")],
    width,
    theme.glyphs,
  );
  return {
    lines: [title, ...body.lines],
    ui: uiOf(ui, body),
    page: extentOf(body, body.room, outputPlace(row, item, width, ui)),
  };
}

/** The settings with the scroll position and the search as they were drawn. */
function uiOf(ui: RunUi, { top: bodyTop, share: bodyShare, find }: StepBody): RunUi {
  return { ...ui, bodyTop, bodyShare, find };
}

function extentOf({ room, count, matches }: StepBody, list: number, output?: OutputPlace): Extent {
  return { list: Math.max(1, list), body: Math.max(1, room), count, matches, ...(output && { output }) };
}

/** The texts of a step, with its whole output once the pager has read that. */
function stepBody(
  props: SceneProps,
  row: NodeRow,
  item: WorkItem | undefined,
  width: number,
  height: number,
): StepBody {
  const place = item && outputPlace(row, item, width, props.ui);
  const { output: pager } = props;
  const output = place && pager && isSameStep(pager.place, place) ? pager : undefined;
  // While rows of the new layout are being read, the output still has its former layout.
  const isOther = place !== undefined && output !== undefined && !isSamePlace(output.place, place);
  const isReading = isOther || props.isReading === true;
  return arrangeBody({ ...props, output, isReading, problem: row.problem, reason: row.reason }, item, width, height);
}

/** “text” 2/14: the search, the present match, and the number of matches. */
function foundSpans({ find, matches }: Pick<StepBody, "find" | "matches">): Line {
  if (find.text === "") return [];
  const count = matches?.length ?? 0;
  const at = find.row === undefined ? 0 : (matches?.indexOf(find.row) ?? -1) + 1;
  const found =
    matches === undefined
      ? "searching"
      : count === 0
        ? "not found"
        : `${at > 0 ? `${at}/` : ""}${count}${count >= mostMatches ? "+" : ""}`;
  return [span(` “${find.text}” `, "accent"), span(`${found} `, count === 0 && matches ? "warning" : "strong")];
}

/** The steps of a node, and the selected step's texts beside them, or on a narrow terminal below. */
function nodePane(
  props: SceneProps,
  { width, height }: Area,
  { items, itemIndex, item }: RowChoice,
  row: NodeRow,
): Pane {
  const { ui, theme, now } = props;
  const isWide = width >= 110;
  const room = isWide ? height - 1 : Math.min(items.length, Math.max(2, Math.floor((height - 2) * 0.4)));
  const window = windowAround(items.length, room, ui.stepTop, itemIndex);
  const listWidth = isWide ? Math.floor(width * 0.45) : width;
  const bodyWidth = isWide ? width - listWidth : width;
  const list = itemLines({ ...props, width: isWide ? listWidth - 3 : width, items, window, selected: itemIndex });
  const body = stepBody(props, row, item, bodyWidth, isWide ? height - 2 : height - 2 - list.length);
  const head = item
    ? [
        ruled(
          [span(`${theme.glyphs.rule.repeat(2)} `, "muted"), span(item.title, "strong"), span(" ")],
          foundSpans(body),
          bodyWidth,
          theme.glyphs,
        ),
      ]
    : [];
  const story = [...head, ...body.lines];
  const isResting = row.state === "pending" || row.state === "idle";
  const reason = row.reason ?? (isResting ? waitsFor(props.model, row.name) : undefined);
  const title = nodeTitle({ ...row, reason }, theme, width, now);
  return {
    lines: isWide
      ? [title, ...besides(list, listWidth - 2, story, theme, height - 1, false)]
      : [title, ...list, ...story],
    ui: { ...uiOf(ui, body), stepTop: window.top },
    page: extentOf(body, room, item && outputPlace(row, item, bodyWidth, ui)),
  };
}

/** The place of a step's whole output; undefined if the model has all of it. */
function outputPlace(
  row: NodeRow,
  { key, stage, above }: WorkItem,
  width: number,
  { wrap, find }: Pick<RunUi, "wrap" | "find">,
): OutputPlace | undefined {
  const step = key.slice(stage.length + 1);
  // An action's output is short, so the model has enough of it.
  if (above === undefined || step.startsWith("!")) return undefined;
  return { node: row.name, step, width: outputWidth(width), wrap, find: find.text };
}

/** The rows, and below them the present work of the selected node. */
function nodesPane(props: SceneProps, { width, inner, preview }: Area, { rows, selected, row, item }: RowChoice): Pane {
  const { model, ui, theme } = props;
  const all = nodeRows(model);
  const room = Math.max(1, Math.min(Math.max(rows.length, 3), inner - preview));
  const window = windowAround(rows.length, room, ui.listTop, selected);
  const isCut = rows.length > room;
  const table = nodeLines({
    ...props,
    width,
    rows,
    window,
    selected,
    sort: ui.sort,
    waits: (name) => waitsFor(model, name),
  });
  const counts = countsLine({
    all,
    shown: rows.length,
    filter: ui.filter,
    search: ui.search,
    sort: ui.sort,
    common: table.common,
    theme,
    width,
    ...(isCut && { window }),
  });
  // If only some nodes are listed, the preview's room shows all of them at a glance.
  const glance = isCut && preview > 0 ? glanceLines({ rows: all, theme, width, now: props.now }) : [];
  const list: readonly Line[] =
    rows.length > 0
      ? table.lines
      : all.length > 0
        ? [[span("    no node matches", "muted")]]
        : model.problems.length > 0
          ? model.problems.flatMap((problem) => [[], ...problemLines(problem, {}, theme, width)])
          : [[span("    no nodes yet", "muted")]];
  const lines = [counts, ...glance, ...filled(list, rows.length > 0 ? room + 1 : inner + 1)];
  if (preview > 0 && row) {
    const step = item ? [span(` ${theme.glyphs.pointer} `, "muted"), span(item.title, "strong")] : [];
    const body = arrangeBody(
      { ...props, output: undefined, problem: row.problem, reason: row.reason, ui: freshUi },
      item,
      width,
      inner - room - glance.length - 1,
    );
    lines.push(titled([span(row.name, "title"), ...step], width, theme.glyphs), ...body.lines);
  }
  return { lines, ui: { ...ui, listTop: window.top }, page: { list: room, body: 1, count: 0 } };
}

/** The index of the first failed row, else of an interrupted, else of a running node, else of the first node. */
function rowToShow(rows: readonly NodeRow[]): number {
  const tests: readonly ((row: NodeRow) => boolean)[] = [
    ({ rank }) => rank === 0,
    ({ state }) => state === "interrupted",
    ({ rank, isBastion }) => rank === 1 && !isBastion,
    ({ rank }) => rank === 1,
    ({ isBastion }) => !isBastion,
  ];
  for (const test of tests) {
    const index = rows.findIndex(test);
    if (index >= 0) return index;
  }
  return 0;
}

function nodeTitle(row: NodeRow, theme: Theme, width: number, now: number): Line {
  const { glyphs } = theme;
  const mark = stateMark(row, glyphs, now);
  return ruled(
    [
      span(`${glyphs.rule.repeat(2)} `, "muted"),
      mark,
      span(` ${row.name}`, "title"),
      span(` ${stateLabel(row)}`, stateRole(row.state)),
      ...(row.milestone === undefined ? [] : [span(`  milestone ${row.milestone}`, "accent")]),
      ...(row.saved === undefined ? [] : [span(`  saved the table of ${row.saved}`, "muted")]),
      ...(row.sending === undefined ? [] : [span(`  ${row.sending}`, "muted")]),
      ...(row.reason === undefined ? [] : [span(`  ${row.reason}`, row.rank === 0 ? "failed" : "muted")]),
      span(" "),
    ],
    [span(` ${stepsText(row) || "0"} steps `, "muted"), span(glyphs.rule, "muted")],
    width,
    glyphs,
  );
}
