import { padColumns } from "#base/text.ts";
import { until } from "#base/units.ts";
import type { Column } from "../../columns/column.ts";
import { concernOfExpiry, roleOf, type Concern } from "../../columns/concern.ts";
import { span, wrapWords, type Line, type Span } from "../text.ts";
import type { Glyphs, Theme } from "../theme.ts";
import type { DetailPage, FleetDrawOptions, DetailFact } from "./section.ts";

/** Shares of 0 to 1 as a small graph, the newest at its right end. */
function graph(shares: readonly number[], width: number, { levels }: Pick<Glyphs, "levels">): string {
  const shown = shares
    .slice(-width)
    .map((share) => levels[Math.min(levels.length - 1, Math.floor(share * levels.length))]);
  return shown.join("").padStart(width);
}

const graphWidth = 6;

/** A column's cell on the dashboard: its text in its colour, with its graph. */
export function drawCell<Row>(
  { cell, onScreen = cell, role, graph: sharesOf, room }: Column<Row>,
  row: Row,
  { theme, now }: FleetDrawOptions,
): Line {
  const text = onScreen(row, now);
  if (text === "") return room?.align === "right" ? [span("-", "muted")] : [];
  const shares = sharesOf?.(row) ?? [];
  const value = typeof role === "function" ? role(row, now) : role;
  if (shares.length === 0) return [span(text, value)];
  return [span(graph(shares, graphWidth, theme.glyphs), "muted"), span(text.padStart(5), value)];
}

/** The shape of a concern; a word stands beside it everywhere. */
export function concernMark(concern: Concern, { glyphs }: Theme): Span {
  const shape = { 0: glyphs.failed, 1: glyphs.warning, 2: glyphs.ok, 3: glyphs.skipped }[concern];
  return span(shape, roleOf(concern));
}

const labelWidth = 14;

/** A page's facts as `label   value` in at most `width` columns; values are broken between words. */
export function pageLines({ facts, groups = [] }: DetailPage, width: number): readonly Line[] {
  const lines = (some: readonly DetailFact[]) => some.flatMap((fact) => factLines(fact, width));
  return [
    ...lines(facts),
    ...groups.flatMap(([heading, some]): readonly Line[] => {
      if (some.length === 0) return [];
      return [[], ...(heading === "" ? [] : [[span(` ${heading}`, "accent")]]), ...lines(some)];
    }),
  ];
}

function factLines([label, value, role]: DetailFact, width: number): readonly Line[] {
  return wrapWords(value === "" ? "-" : value, Math.max(8, width - labelWidth - 2)).map((part, index): Line => [
    span(` ${padColumns(index === 0 ? label : "", labelWidth)} `, "muted"),
    span(part, role),
  ]);
}

/** An expiry and the time left until then; empty without an expiry. */
export function expiryFact(label: string, time: string | undefined, now: number, about = ""): DetailFact {
  const concern = concernOfExpiry(time, now);
  return [label, time ? `${about}${time} (${until(time, now)})` : "", concern === 2 ? "plain" : roleOf(concern)];
}
