import { shortAge } from "#base/units.ts";
import { joinFitting, justify, lineWidth, span, type Line, type Span } from "../text.ts";
import type { TextRole, Theme } from "../theme.ts";
import { alarmsOf, controllerName } from "../../columns/controller-columns.ts";
import { controllerRows } from "./controllers-section.ts";
import type { FleetUi } from "./fleet-ui.ts";
import { sectionNames } from "./fleet-ui.ts";
import { listers } from "./section-rows.ts";
import type { FleetLink, FleetSnapshot } from "./snapshot.ts";

export interface FleetProps {
  readonly snapshot: FleetSnapshot;
  readonly link: FleetLink;
  readonly ui: FleetUi;
  readonly theme: Theme;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** The age of data, in milliseconds, at which a live view marks them as stale: the controller may hang. */
const lateMs = 15_000;

/** Whether the data may be out of date. */
export function isStale({ link, snapshot, now }: FleetProps): boolean {
  return link.state === "lost" || now - snapshot.at > lateMs;
}

/** The context and its controller; then, unless `compact`, the cluster in numbers. */
export function fleetHeader(props: FleetProps, width: number, compact: boolean): readonly Line[] {
  const { snapshot, theme } = props;
  const title: Line = [span(" "), span("kcore top", "title"), span("  context ", "muted"), span(snapshot.context)];
  const first = justify(title, [...linkSpans(props, width < 90), span(" ")], width, theme.glyphs);
  return compact ? [first] : [first, summaryLine(props, width)];
}

function linkSpans(props: FleetProps, narrow: boolean): readonly Span[] {
  const { link, snapshot, theme, now } = props;
  const { glyphs } = theme;
  const age = shortAge(Math.floor((now - snapshot.at) / 5000) * 5000);
  if (link.state === "lost") {
    const trying = span(`${glyphs.warning} lost ${link.endpoint}, trying ${link.trying} ${glyphs.ellipsis}`, "failed");
    return narrow ? [trying] : [trying, span(`  data ${age} old`, "warning")];
  }
  if (isStale(props)) return [span(`${glyphs.warning} ${link.endpoint} is silent, data ${age} old`, "warning")];
  return [span(`${glyphs.ok} live`, "ok"), span(`  ${link.endpoint}`, "muted")];
}

function summaryLine({ snapshot, theme, ui }: FleetProps, width: number): Line {
  const { glyphs } = theme;
  const statuses = new Map<string, number>();
  for (const { status } of snapshot.nodes) statuses.set(status, (statuses.get(status) ?? 0) + 1);
  const count = (status: string): number => statuses.get(status) ?? 0;
  const nodes: Line = [
    span(`${numbered(snapshot.nodes.length, "node")}:`, "muted"),
    ...statusCount(count("ready"), glyphs.ok, "ready", "ok"),
    ...statusCount(count("not-ready"), glyphs.failed, "not ready", "failed"),
    ...statusCount(count("pending"), glyphs.pending, "pending", "warning"),
    ...statusCount(count("rejected"), glyphs.skipped, "rejected", "muted"),
    ...statusCount(count("unknown"), glyphs.unknown, "unknown", "muted"),
  ];
  const expiring = listers.certificates(snapshot, ui).counts;
  const dues = (expiring[0] ?? 0) + (expiring[1] ?? 0);
  const conflicts = snapshot.conflicts.length;
  const parts: readonly Line[] = [
    nodes,
    dues > 0 ? [span(`${glyphs.warning} ${numbered(dues, "certificate")} near expiry`, "warning")] : [],
    conflicts > 0 ? [span(`${glyphs.warning} ${numbered(conflicts, "conflict")}`, "warning")] : [],
  ].filter((part) => part.length > 0);
  return joinFitting(parts, `  ${glyphs.dot}  `, width);
}

function numbered(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}

function statusCount(count: number, shape: string, word: string, role: TextRole): Line {
  return count === 0 ? [] : [span(`  ${shape} ${count} ${word}`, role)];
}

/** The sections with their numbers of rows; a shape marks sections with trouble. */
export function sectionsLine({ snapshot, ui, theme }: FleetProps, width: number): Line {
  const { glyphs } = theme;
  const tabs = (short: boolean): Line =>
    sectionNames.flatMap((name, index): Line => {
      const { title: whole, total, counts } = listers[name](snapshot, ui);
      // Without rollouts the section is left out, because eighty columns are few.
      if (name === "updates" && total === 0 && ui.section !== name) return [];
      const title = name === "certificates" ? "certs" : whole;
      const isHere = ui.section === name;
      const [bad = 0, warnings = 0] = counts;
      const mark = bad > 0 ? span(glyphs.failed, "failed") : warnings > 0 ? span(glyphs.warning, "warning") : undefined;
      const word = short ? title.slice(0, 5) : title;
      return [
        span(index === 0 ? " " : "  "),
        span(
          isHere ? ` ${index + 1} ${word} ${total} ` : `${index + 1} ${word} ${total}`,
          isHere ? "selected" : "muted",
        ),
        ...(mark ? [span(short ? "" : " "), mark] : []),
      ];
    });
  const line = tabs(false);
  return lineWidth(line) <= width ? line : tabs(true);
}

/** One line: the first of the controllers' alarms, and their number; empty without alarms. */
export function alarmLines({ snapshot, theme }: FleetProps): readonly Line[] {
  const all = controllerRows(snapshot).flatMap((row) =>
    alarmsOf(row).map((text) => ({ name: controllerName(row), text })),
  );
  const [first] = all;
  if (!first) return [];
  const more = all.length > 1 ? ` (${all.length} alarms, 3 shows the controllers)` : "";
  return [[span(` ${theme.glyphs.warning} `, "warning"), span(`${first.name}: ${first.text}`), span(more, "muted")]];
}
