import { since, until } from "#base/units.ts";
import { span, wrapWords, type Line, type Span } from "../text.ts";
import type { Glyphs, Theme } from "../theme.ts";
import { roleOf, type Concern, type Fact, type DetailPage } from "./section.ts";

const day = 86_400_000;

/** Certificates live 90 days and are renewed at 30 days left, so that fewer days left mean a missed renewal. */
export function concernOfExpiry(time: string | undefined, now: number): Concern {
  if (time === undefined || time === "") return 2;
  const left = Date.parse(time) - now;
  return left <= 7 * day ? 0 : left <= 30 * day ? 1 : 2;
}

/** The time left until an expiry, coloured if it is short. */
export function expiryCell(time: string | undefined, now: number): Line {
  const concern = concernOfExpiry(time, now);
  return [span(until(time ?? "", now), concern === 2 ? "muted" : roleOf(concern))];
}

/** The age of a time, in steps of five seconds at first, so that heartbeats do not make the screen flicker. */
export function coarseSince(time: string, now: number): string {
  const age = now - Date.parse(time);
  if (time === "" || age >= 120_000) return since(time, now);
  return age < 5000 ? "<5s" : `${Math.floor(age / 5000) * 5}s`;
}

export function sinceCell(time: string, now: number): Line {
  return [span(coarseSince(time, now), "muted")];
}

/** Two missed heartbeats: an agent sends one every 15 s, and other controllers get it up to 15 s later. */
const missedMs = 45_000;

/** The age of a node's last heartbeat; it stands out when two are missed. */
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

/** A number that should be zero. */
export function countCell(count: number): Line {
  return [count === 0 ? span("0", "muted") : span(String(count), "warning")];
}

/** The shape of a concern; a word stands beside it everywhere. */
export function concernMark(concern: Concern, { glyphs }: Theme): Span {
  const shape = { 0: glyphs.failed, 1: glyphs.warning, 2: glyphs.ok, 3: glyphs.skipped }[concern];
  return span(shape, roleOf(concern));
}

const labelWidth = 14;

/** A page's facts as `label   value`, values broken between words, in so many columns. */
export function pageLines({ facts, groups = [] }: DetailPage, width: number): readonly Line[] {
  const lines = (some: readonly Fact[]) => some.flatMap((fact) => factLines(fact, width));
  return [
    ...lines(facts),
    ...groups.flatMap(([heading, some]): readonly Line[] => {
      if (some.length === 0) return [];
      return [[], ...(heading === "" ? [] : [[span(` ${heading}`, "accent")]]), ...lines(some)];
    }),
  ];
}

function factLines([label, value, role]: Fact, width: number): readonly Line[] {
  return wrapWords(value === "" ? "-" : value, Math.max(8, width - labelWidth - 2)).map((part, index): Line => [
    span(` ${(index === 0 ? label : "").padEnd(labelWidth)} `, "muted"),
    span(part, role),
  ]);
}

/** An expiry and the time left until then; empty without an expiry. */
export function expiryFact(label: string, time: string | undefined, now: number, about = ""): Fact {
  const concern = concernOfExpiry(time, now);
  return [label, time ? `${about}${time} (${until(time, now)})` : "", concern === 2 ? "plain" : roleOf(concern)];
}
