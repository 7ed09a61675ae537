import { filled, ruled, scrolledText, tooSmall, windowAround } from "../blocks.ts";
import { footerLine, helpLines, searchField, type KeyHelp } from "../keys.ts";
import type { TerminalSize } from "../screen.ts";
import { span, type Line } from "../text.ts";
import type { Theme, Glyphs } from "../theme.ts";
import { concernMark } from "./cells.ts";
import { alarmLines, fleetHeader, isStale, sectionsLine, type FleetProps } from "./fleet-header.ts";
import type { FleetUi } from "./fleet-ui.ts";
import type { Concern } from "../../columns/concern.ts";
import { listers, type SectionRows } from "./section-rows.ts";

export interface FleetSceneProps extends FleetProps {
  readonly size: TerminalSize;
}

/** A frame of the dashboard, and its state as the keys see it. */
export interface FleetScene {
  /** From top to bottom; exactly as many as the terminal has rows. */
  readonly lines: readonly Line[];
  /** The operator's settings, with scroll positions that fit. */
  readonly ui: FleetUi;
  readonly listing: SectionRows;
  readonly selected: number;
  /** The key of the selected row, or of the row whose page is open. */
  readonly key?: string;
  /** The number of visible rows. */
  readonly page: number;
}

/** Lays the cluster out on the terminal. Pure. */
export function arrangeFleet(props: FleetSceneProps): FleetScene {
  const { snapshot, ui, size, theme } = props;
  const { columns: width, rows: height } = size;
  const listing = listers[ui.section](snapshot, ui);
  const state = ui.states[ui.section];
  const found = state.key === undefined ? 0 : listing.keys.indexOf(state.key);
  const selected = Math.max(0, found);
  // An open page stays with its row, also when a filter no longer lets the row through.
  const key = ui.isOpen ? state.key : listing.keys[selected];
  const base = { listing, selected, ...(key === undefined ? {} : { key }) };
  const tiny = tooSmall(size, "kcore top");
  if (tiny) return { ...base, ui, page: 1, lines: filled([tiny], height) };
  const head = [...fleetHeader(props, width, height < 18), sectionsLine(props, width)];
  const alarms = height < 16 ? [] : alarmLines(props);
  const room = height - head.length - alarms.length - 1;
  const main = ui.help ? helpPane(props, room) : (openPane(props, base, room) ?? listPane(props, base, room));
  return {
    ...base,
    ui: main.ui,
    page: Math.max(1, room - 2),
    lines: [...head, ...filled(main.lines, room), ...alarms, fleetFooter(props, theme.glyphs)],
  };
}

type ListSelection = Pick<FleetScene, "listing" | "selected" | "key">;
interface FleetPane {
  readonly lines: readonly Line[];
  readonly ui: FleetUi;
}

function listPane(props: FleetSceneProps, { listing, selected }: ListSelection, room: number): FleetPane {
  const { ui, size, theme, now } = props;
  const state = ui.states[ui.section];
  const window = windowAround(listing.keys.length, room - 2, state.top, selected);
  const options = { theme, now, width: size.columns, stale: isStale(props) };
  const empty = listing.total === 0 ? listing.emptyText : "nothing matches; a shows all";
  return {
    ui: { ...ui, states: { ...ui.states, [ui.section]: { ...state, top: window.top } } },
    lines: [
      sectionRule(props, listing),
      ...(listing.keys.length === 0 ? [[span(`    ${empty}`, "muted")]] : listing.lines(window, selected, options)),
    ],
  };
}

/** The rule above the rows: numbers of rows and concerns, filter and order. */
function sectionRule(props: FleetSceneProps, { title, total, counts, keys, order }: SectionRows): Line {
  const { ui, theme, size } = props;
  const { glyphs } = theme;
  const [bad = 0, warnings = 0] = counts;
  const left: Line = [
    span(`${glyphs.rule.repeat(2)} `, "muted"),
    span(`${total} ${total === 1 ? title.replace(/s$/, "") : title}`, "strong"),
    // Near the start of the line, where nothing is cut off.
    ...staleMark(props),
    ...(bad > 0 ? [span(`  ${glyphs.failed} ${bad} bad`, "failed")] : []),
    ...(warnings > 0 ? [span(`  ${glyphs.warning} ${warnings} to look at`, "warning")] : []),
    span(" "),
  ];
  const words = [ui.trouble ? "trouble" : "", ui.dc ?? "", ui.search === "" ? "" : `“${ui.search}”`].filter(Boolean);
  const sorted = `by ${order} ${ui.states[ui.section].reversed ? glyphs.up : glyphs.down}`;
  const right: Line = [
    ...(words.length === 0
      ? []
      : [span(" only ", "muted"), span(words.join(" and "), "accent"), span(`: ${keys.length}`)]),
    span(` ${sorted} `, "muted"),
    span(glyphs.rule, "muted"),
  ];
  return ruled(left, right, size.columns, glyphs);
}

function openPane(props: FleetSceneProps, { listing, key }: ListSelection, room: number): FleetPane | undefined {
  const { ui, size, theme, now } = props;
  if (!ui.isOpen || key === undefined) return undefined;
  const width = size.columns;
  const page = listing.page(key, { theme, now, width }) ?? {
    title: key,
    lines: [[span(" it is no longer there; Esc goes back", "warning")]],
  };
  const title = [span(page.title, "title"), ...staleMark(props)];
  const { top, lines } = scrolledText(title, page.lines, { top: ui.bodyTop, room, width }, theme.glyphs);
  return { ui: { ...ui, bodyTop: top }, lines };
}

function helpPane({ ui, size: { columns: width }, theme }: FleetSceneProps, room: number): FleetPane {
  const text = [...helpLines(fleetKeys(ui, theme.glyphs), width), [], ...fleetLegend(theme)];
  const { top, lines } = scrolledText([span("keys", "accent")], text, { top: ui.bodyTop, room, width }, theme.glyphs);
  return { ui: { ...ui, bodyTop: top }, lines };
}

function staleMark(props: FleetSceneProps): Line {
  return isStale(props) ? [span("  "), span(" stale ", "banner")] : [];
}

function fleetLegend(theme: Theme): readonly Line[] {
  const shapes: readonly (readonly [Concern, string])[] = [
    [0, "not ready, down, read-only, or a certificate with 7 days left or less"],
    [1, "look here: pending, never registered, a conflict, lag, an alarm, 30 days left or less"],
    [2, "in order"],
    [3, "put aside: rejected"],
  ];
  return shapes.map(([concern, text]) => [span(" "), concernMark(concern, theme), span(` ${text}`, "muted")]);
}

function fleetFooter({ ui, theme, size, now }: FleetSceneProps, glyphs: typeof theme.glyphs): Line {
  if (ui.toast && now < ui.toast.until) return [span(` ${ui.toast.text}`, ui.toast.role)];
  if (ui.searching) return searchField(ui.search, theme);
  const back = [
    { keys: "Esc", short: "back", long: "" },
    { keys: glyphs.upDown, short: "scroll", long: "" },
  ];
  return footerLine(ui.help ? back : fleetKeys(ui, glyphs), size.columns);
}

/** The keys that do something now, the most important first; the same as in the run view. */
export function fleetKeys({ isOpen }: Pick<FleetUi, "isOpen">, glyphs: Glyphs): readonly KeyHelp[] {
  const shared: readonly KeyHelp[] = [
    { keys: "?", short: "help", long: "this help" },
    { keys: "q", short: "leave", long: "leave (also Ctrl-C)" },
  ];
  const rest: readonly KeyHelp[] = [
    { keys: "c", short: "copy", long: "copy the next command: approve the node, look at the agent, show more" },
    { keys: "Ctrl-Z", long: "suspend this view; fg comes back" },
    { keys: "Ctrl-L", long: "draw everything again" },
  ];
  if (isOpen)
    return [
      { keys: glyphs.upDown, short: "scroll", long: "scroll (also j, k, PgUp, PgDn)" },
      { keys: "Esc", short: "back", long: "back to the list (also h, Backspace)" },
      ...shared,
      { keys: "n p", short: "next", long: "the next or the previous one" },
      ...rest,
    ];
  return [
    { keys: glyphs.upDown, short: "move", long: "to another row (also j, k)" },
    { keys: glyphs.enter, short: "open", long: "all that is known of the row; of a DC the nodes (also l)" },
    ...shared,
    {
      keys: "Tab",
      short: "section",
      long: "the next section; Shift-Tab the one before; 1 to 6 a section by its number",
    },
    { keys: "/", short: "search", long: "only rows that hold these words" },
    { keys: "f", short: "trouble", long: "only what needs attention; again: all" },
    { keys: "s", short: "sort", long: "order by the next column; S turns the order round" },
    { keys: "a", long: "all rows again: no filter, no search (also Esc)" },
    { keys: "PgUp PgDn", long: "a page up or down" },
    { keys: "g G", long: "to the first or the last" },
    ...rest,
  ];
}
