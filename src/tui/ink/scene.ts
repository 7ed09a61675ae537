import type { Question } from "#engine/events/event.ts";
import type { RunModel } from "#engine/events/model.ts";
import { nodeRows, type NodeRow } from "../node-row.ts";
import { orderRows } from "../row-order.ts";
import { tellingItem, type WorkItem } from "../work-item.ts";
import { headerLines } from "./header.ts";
import { itemDetails, itemHead } from "./item-body.ts";
import { itemLines } from "./item-list.ts";
import { footerLine, helpLines } from "./keys.ts";
import { stateMark, stateRole, stateWord } from "./marks.ts";
import { countsLine, nodeLines, ruled } from "./nodes.ts";
import type { PlayerControls } from "./open-run-view.ts";
import { panelRule, playerLine, questionLines, stopLines } from "./panels.ts";
import { runKeys } from "./run-help.ts";
import type { RunUi } from "./run-ui.ts";
import type { Size } from "./screen.ts";
import { windowAround } from "./scroll.ts";
import { stageList, stageStrip } from "./stages.ts";
import { justify, padLine, span, wrapText, type Line } from "./text.ts";
import type { Theme } from "./theme.ts";

export interface SceneProps {
  readonly model: RunModel;
  readonly ui: RunUi;
  readonly size: Size;
  readonly theme: Theme;
  /** Milliseconds since the epoch: the run's clock, and that of the person before the screen. */
  readonly now: number;
  readonly real: number;
  readonly project: string;
  readonly usual?: ReadonlyMap<string, number>;
  readonly player?: ReturnType<PlayerControls["state"]>;
}

/** A frame and what the keys need to know of it. */
export interface Scene {
  /** From top to bottom; together exactly as high as the terminal. */
  readonly parts: readonly Part[];
  /** What the user made of the view, with scroll positions that fit. */
  readonly ui: RunUi;
  readonly model: RunModel;
  readonly rows: readonly NodeRow[];
  readonly selected: number;
  readonly row?: NodeRow;
  readonly items: readonly WorkItem[];
  readonly itemIndex: number;
  readonly item?: WorkItem;
  /** The question that the keys answer now. */
  readonly question?: Question;
  readonly replay: boolean;
  /** Rows that the list and the body show. */
  readonly page: { readonly list: number; readonly body: number };
}

export interface Part {
  readonly name: "header" | "stages" | "main" | "warnings" | "panel" | "player" | "footer";
  readonly lines: readonly Line[];
}

const smallest: Size = { columns: 40, rows: 8 };

/** Lays the run out on the terminal: a pure function of what is given. */
export function arrange(props: SceneProps): Scene {
  const { model, ui, size, theme, now, player } = props;
  const { columns: width, rows: height } = size;
  const isTiny = width < smallest.columns || height < smallest.rows;
  const isSideBySide = width >= 140 && height >= 20;

  const header = headerLines({ ...props, width, compact: height < 18, ...(player ? { player } : {}) });
  const stages = isSideBySide || height < 10 ? [] : stageStrip({ model, theme, width, now }, height < 24 ? 1 : 2);
  const warnings = height < 16 ? [] : warningLines(model, theme);
  const open = model.questions.filter(({ id }) => !ui.sent.has(id));
  const question = open[0];
  const isAsking = question !== undefined && !player && model.state !== "finished";
  const panel = ui.stopping
    ? stopLines(model, theme, width)
    : isAsking && !ui.aside
      ? questionLines(question, open.length, ui.answer.id === question.id ? ui.answer.typed : "", theme, width)
      : [];
  const bar = player && height >= 10 ? [playerLine(player, theme, width)] : [];
  const used = header.length + stages.length + warnings.length + bar.length + 1;
  const shownPanel = panel.slice(0, Math.max(0, height - used - 1));
  const room = Math.max(0, height - used - shownPanel.length);

  const aside = isSideBySide ? 30 : 0;
  const main = arrangeMain(props, width - aside, room);
  const scene = { ...main, model, replay: player !== undefined, ...(isAsking && !ui.aside ? { question } : {}) };
  const footer = footerOf(props, { asked: isAsking && !ui.aside, waiting: isAsking && ui.aside ? open.length : 0 });
  const body = isSideBySide
    ? besides(
        [
          panelTitle("stages", theme, aside - 3),
          ...fitList(stageList({ model, theme, width: aside - 3, now }), room - 1, model),
        ],
        aside - 2,
        main.lines,
        theme,
        room,
      )
    : main.lines;
  const parts: readonly Part[] = isTiny
    ? [{ name: "main", lines: [tinyLine(model, size)] }]
    : [
        { name: "header", lines: header },
        { name: "stages", lines: stages },
        { name: "main", lines: filled(body, room) },
        { name: "warnings", lines: warnings },
        { name: "panel", lines: shownPanel },
        { name: "player", lines: bar },
        { name: "footer", lines: [footer] },
      ];
  return { ...scene, parts };
}

type Main = Omit<Scene, "parts" | "model" | "replay" | "question"> & { readonly lines: readonly Line[] };

function arrangeMain(props: SceneProps, width: number, room: number): Main {
  const { model, ui, theme, now, usual } = props;
  const all = nodeRows(model);
  const inner = Math.max(1, room - 2);
  // At least so much for the selected node, where there is room for both.
  const preview = inner >= 10 ? Math.max(6, Math.floor(inner * 0.4)) : 0;
  const rows = orderRows(all, {
    filter: ui.filter,
    search: ui.search,
    height: inner - preview,
    ...(ui.selected ? { held: ui.selected } : {}),
  });
  const chosen = ui.selected ? rows.findIndex(({ name }) => name === ui.selected?.name) : -1;
  const selected = chosen >= 0 ? chosen : Math.max(0, telling(rows));
  const row = rows[selected];
  const items = row?.items ?? [];
  const picked = ui.pane === "node" && ui.step !== undefined ? items.findIndex(({ key }) => key === ui.step) : -1;
  const itemIndex = picked >= 0 ? picked : Math.max(0, items.indexOf(tellingItem(items) as WorkItem));
  const item = items[itemIndex];
  const known = { rows, selected, items, itemIndex, ...(row ? { row } : {}), ...(item ? { item } : {}) };

  if (ui.overlay !== undefined) return { ...known, ...arrangeOverlay(props, width, room) };
  const shared = { theme, width, now, ...(usual ? { usual } : {}) };

  if (ui.pane === "node" && row) {
    const title = nodeTitle(row, theme, width, now);
    const wide = width >= 110;
    const stepsRoom = wide ? room - 1 : Math.min(items.length, Math.max(2, Math.floor((room - 2) * 0.4)));
    const window = windowAround(items.length, stepsRoom, ui.stepTop, itemIndex);
    const listWidth = wide ? Math.floor(width * 0.45) : width;
    const list = itemLines({ ...shared, width: listWidth - (wide ? 3 : 0), items, window, selected: itemIndex });
    const bodyWidth = wide ? width - listWidth : width;
    const bodyRoom = wide ? room - 2 : room - 2 - list.length;
    const body = arrangeBody(props, item, bodyWidth, bodyRoom);
    const bodyTitle = item === undefined ? [] : [itemTitle(item, theme, bodyWidth)];
    const lines = wide
      ? [title, ...besides(list, listWidth - 2, [...bodyTitle, ...body.lines], theme, room - 1)]
      : [title, ...list, ...bodyTitle, ...body.lines];
    return {
      ...known,
      lines,
      ui: { ...ui, stepTop: window.top, bodyTop: body.top },
      page: { list: stepsRoom, body: Math.max(1, body.room) },
    };
  }

  const listRoom = Math.max(1, Math.min(Math.max(rows.length, 3), inner - preview));
  const window = windowAround(rows.length, listRoom, ui.listTop, selected);
  const counts = countsLine({ all, shown: rows.length, filter: ui.filter, search: ui.search, theme, width });
  const list = nodeLines({ ...shared, rows, window, selected });
  const nothing: Line[] =
    rows.length > 0 ? [] : [[span(all.length === 0 ? "    no nodes yet" : "    no node matches", "muted")]];
  const below = inner - Math.max(listRoom, 1) - 1;
  const body =
    preview === 0 || !row ? undefined : arrangeBody({ ...props, ui: { ...ui, bodyTop: 0 } }, item, width, below);
  const title = body && row ? [previewTitle(row, item, theme, width)] : [];
  return {
    ...known,
    lines: [
      counts,
      ...list,
      ...nothing,
      ...filled([], listRoom - list.length + 1 - nothing.length),
      ...title,
      ...(body?.lines ?? []),
    ],
    ui: { ...ui, listTop: window.top },
    page: { list: listRoom, body: 1 },
  };
}

/** The first failure, else the first node where something goes on. */
function telling(rows: readonly NodeRow[]): number {
  const first = rows.findIndex(({ rank }) => rank === 0);
  return first >= 0 ? first : rows.findIndex(({ rank, isBastion }) => rank === 1 && !isBastion);
}

/** The head of a step stays; what follows scrolls, and shows its end while the step runs and is followed. */
function arrangeBody(
  { ui, theme, now, usual }: SceneProps,
  item: WorkItem | undefined,
  width: number,
  room: number,
): { readonly lines: readonly Line[]; readonly top: number; readonly room: number } {
  if (!item || room <= 0) return { lines: [], top: 0, room: 0 };
  const props = { item, theme, width, now, ...(usual ? { usual } : {}) };
  const head = itemHead(props).slice(0, room);
  const details = itemDetails(props);
  const left = room - head.length;
  const isFollowing = ui.follow && item.outcome === undefined;
  const { top, end } = windowAround(details.length, left, isFollowing ? details.length : ui.bodyTop);
  const lines = [...head, ...details.slice(top, end)];
  const hidden = details.length - end;
  if (hidden > 0 && left > 1)
    lines[lines.length - 1] = [span(`   ${theme.glyphs.down} ${hidden + 1} more lines`, "muted")];
  return { lines, top, room: left };
}

function nodeTitle(row: NodeRow, theme: Theme, width: number, now: number): Line {
  const { glyphs } = theme;
  const mark = stateMark(row, glyphs, now);
  return ruled(
    [
      span(`${glyphs.rule.repeat(2)} `, "muted"),
      mark,
      span(` ${row.name}`, "title"),
      span(` ${stateWord(row)}`, stateRole(row.state)),
      ...(row.milestone === undefined ? [] : [span(`  ${row.milestone}`, "accent")]),
      ...(row.reason === undefined ? [] : [span(`  ${row.reason}`, row.rank === 0 ? "failed" : "muted")]),
      span(" "),
    ],
    [span(` ${row.ended}/${row.planned} steps `, "muted"), span(glyphs.rule, "muted")],
    width,
    glyphs,
  );
}

function itemTitle(item: WorkItem, { glyphs }: Theme, width: number): Line {
  return ruled([span(`${glyphs.rule.repeat(2)} `, "muted"), span(item.title, "strong"), span(" ")], [], width, glyphs);
}

function previewTitle(row: NodeRow, item: WorkItem | undefined, { glyphs }: Theme, width: number): Line {
  return ruled(
    [
      span(`${glyphs.rule.repeat(2)} `, "muted"),
      span(row.name, "title"),
      ...(item ? [span(` ${glyphs.pointer} `, "muted"), span(item.title, "strong")] : []),
      span(" "),
    ],
    [],
    width,
    glyphs,
  );
}

function panelTitle(title: string, { glyphs }: Theme, width: number): Line {
  return ruled([span(`${glyphs.rule.repeat(2)} ${title} `, "muted")], [], width, glyphs);
}

function arrangeOverlay(props: SceneProps, width: number, room: number): Pick<Main, "lines" | "ui" | "page"> {
  const { ui, theme, model, now, player } = props;
  const content = {
    help: () => helpLines(runKeys(ui, theme.glyphs, { replay: player !== undefined }), width, theme.glyphs),
    stages: () => stageList({ model, theme, width, now }),
    warnings: () => allWarnings(model, theme, width),
  }[ui.overlay ?? "help"]();
  const { top, end } = windowAround(content.length, room - 1, ui.overlayTop);
  const title = { help: "keys", stages: "stages", warnings: "warnings" }[ui.overlay ?? "help"];
  const more = end < content.length ? `, ${content.length - end} more below` : "";
  return {
    lines: [panelRule(`${title}${more}`, theme, width), ...content.slice(top, end)],
    ui: { ...ui, overlayTop: top },
    page: { list: Math.max(1, room - 1), body: 1 },
  };
}

function warningLines({ warnings }: RunModel, { glyphs }: Theme): readonly Line[] {
  const last = warnings.at(-1);
  if (!last) return [];
  const more = warnings.length > 1 ? ` (${warnings.length} warnings, w shows all)` : "";
  return [
    [
      span(` ${glyphs.warning} `, "warning"),
      span(`${last.node === undefined ? "" : `${last.node}: `}${last.text}`),
      span(more, "muted"),
    ],
  ];
}

function allWarnings({ warnings }: RunModel, { glyphs }: Theme, width: number): readonly Line[] {
  if (warnings.length === 0) return [[span("  no warnings", "muted")]];
  return warnings.flatMap(({ node, text }) =>
    wrapText(`${node === undefined ? "" : `${node}: `}${text}`, width - 4).map((part, index): Line => [
      span(index === 0 ? ` ${glyphs.warning} ` : "   ", "warning"),
      span(part),
    ]),
  );
}

function footerOf(
  { ui, theme, size: { columns: width }, real, player }: SceneProps,
  { asked, waiting }: { readonly asked: boolean; readonly waiting: number },
): Line {
  const { glyphs } = theme;
  if (ui.toast && real < ui.toast.until) return [span(` ${ui.toast.text}`, ui.toast.role)];
  if (ui.stopping) return footerLine([{ keys: glyphs.enter, short: "wait", long: "" }], width);
  if (asked)
    return footerLine(
      [
        { keys: glyphs.enter, short: "answer", long: "" },
        { keys: "Tab", short: "look around first", long: "" },
        { keys: "Ctrl-C", short: "stop", long: "" },
      ],
      width,
    );
  if (ui.searching)
    return [
      span(" /", "accent"),
      span(ui.search),
      span(theme.unicode ? "█" : "_", "accent"),
      span(`   ${glyphs.enter} keep  Esc clear`, "muted"),
    ];
  if (ui.overlay !== undefined)
    return footerLine(
      [
        { keys: "Esc", short: "back", long: "" },
        { keys: glyphs.upDown, short: "scroll", long: "" },
      ],
      width,
    );
  const keys = footerLine(runKeys(ui, glyphs, { replay: player !== undefined }), waiting > 0 ? width - 30 : width);
  if (waiting === 0) return keys;
  return justify(keys, [span(`${glyphs.unknown} ${waiting} open, Tab answers `, "warning")], width, glyphs);
}

/** Two blocks beside each other with a bar between them. */
function besides(
  left: readonly Line[],
  leftWidth: number,
  right: readonly Line[],
  { glyphs }: Theme,
  height: number,
): readonly Line[] {
  return Array.from({ length: Math.max(0, height) }, (_, index) => [
    ...padLine(left[index] ?? [], leftWidth - 1, glyphs),
    span(` ${glyphs.bar} `, "muted"),
    ...(right[index] ?? []),
  ]);
}

/** What is beyond the end stays unseen unless the run has got there. */
function fitList(lines: readonly Line[], height: number, { stages }: RunModel): readonly Line[] {
  const now = stages.findLastIndex(({ state }) => state !== "pending");
  const { top, end } = windowAround(lines.length, height, 0, Math.max(0, Math.min(lines.length - 1, now + 2)));
  return lines.slice(top, end);
}

function filled(lines: readonly Line[], height: number): readonly Line[] {
  if (lines.length >= height) return lines.slice(0, Math.max(0, height));
  return [...lines, ...Array.from({ length: height - lines.length }, () => [])];
}

function tinyLine({ title, state }: RunModel, { columns, rows }: Size): Line {
  return [span(`${columns}x${rows} is too small; ${smallest.columns}x${smallest.rows} will do. ${title} ${state}`)];
}
