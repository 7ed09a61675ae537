import { since, until } from "#base/units.ts";
import { span, wrapWords, type Line, type Span } from "../text.ts";
import type { Glyphs, Theme } from "../theme.ts";
import { roleOf, type Concern } from "./section.ts";

const day = 86_400_000;

/** Certificates live 90 days and are renewed at 30 left: less says that nobody did. */
export function concernOfExpiry(time: string | undefined, now: number): Concern {
  if (time === undefined || time === "") return 2;
  const left = Date.parse(time) - now;
  return left <= 7 * day ? 0 : left <= 30 * day ? 1 : 2;
}

/** How long until then, coloured where it is soon. */
export function expiryCell(time: string | undefined, now: number): Line {
  const concern = concernOfExpiry(time, now);
  return [span(until(time ?? "", now), concern === 2 ? "muted" : roleOf(concern))];
}

/** How long ago, in steps of five seconds at first: what lives must not make the whole screen flicker. */
export function coarseSince(time: string, now: number): string {
  const age = now - Date.parse(time);
  if (time === "" || age >= 120_000) return since(time, now);
  return age < 5000 ? "<5s" : `${Math.floor(age / 5000) * 5}s`;
}

export function sinceCell(time: string, now: number): Line {
  return [span(coarseSince(time, now), "muted")];
}

/** An agent tells every 15 s that it lives, and another controller hears of it up to 15 s later: then two are missed. */
const missedMs = 45_000;

/** When a node was heard last; it stands out when two heartbeats are missed. */
export function seenCell(time: string, now: number): Line {
  const isMissed = time !== "" && now - Date.parse(time) > missedMs;
  return [span(coarseSince(time, now), isMissed ? "warning" : "muted")];
}

/** Shares of 0 to 1 as a small graph, the newest at its right end. */
export function graph(shares: readonly number[], width: number, { levels }: Pick<Glyphs, "levels">): string {
  const shown = shares
    .slice(-width)
    .map((share) => levels[Math.min(levels.length - 1, Math.floor(share * levels.length))]);
  return shown.join("").padStart(width);
}

/** A number that should be nought. */
export function countCell(count: number): Line {
  return [count === 0 ? span("0", "muted") : span(String(count), "warning")];
}

/** A shape for how it stands; a word stands beside it wherever it is shown. */
export function concernMark(concern: Concern, { glyphs }: Theme): Span {
  const shape = { 0: glyphs.failed, 1: glyphs.warning, 2: glyphs.ok, 3: glyphs.skipped }[concern];
  return span(shape, roleOf(concern));
}

const labelWidth = 14;

/** `label   value`, the value broken between words. */
export function factLines(label: string, value: string, width: number, role?: Span["role"]): readonly Line[] {
  return wrapWords(value === "" ? "-" : value, Math.max(8, width - labelWidth - 2)).map((part, index): Line => [
    span(` ${(index === 0 ? label : "").padEnd(labelWidth)} `, "muted"),
    span(part, role),
  ]);
}

/** A blank line and a word over what follows. */
export function headed(title: string, lines: readonly Line[]): readonly Line[] {
  return lines.length === 0 ? [] : [[], [span(` ${title}`, "accent")], ...lines];
}
