import { takeColumns, widthOf } from "#base/text.ts";
import { oneLine } from "./text.ts";
import type { Glyphs } from "./theme.ts";

/**
 * Labels for names, in at most `width` columns and no two alike. Short names stay whole. Long names first lose their common parts,
 * then the ends of words, as long as the names still differ: `k3s-work…0001`, `w-fra1-0001`.
 */
export function tellApart(
  names: readonly string[],
  width: number,
  { ellipsis }: Pick<Glyphs, "ellipsis">,
): ReadonlyMap<string, string> {
  const { labels } = lastLabels;
  const isSame = lastLabels.width === width && lastLabels.ellipsis === ellipsis && labels.size === names.length;
  if (isSame && names.every((name) => labels.has(name))) return labels;
  lastLabels = { width, ellipsis, labels: labelNames(names, width, ellipsis) };
  return lastLabels.labels;
}

/** The common start of all names in whole words; empty for one name, and below three characters. */
export function commonStart(names: readonly string[]): string {
  const [first = "", ...rest] = names;
  let end = rest.length === 0 ? 0 : first.length;
  for (const name of rest) while (!name.startsWith(first.slice(0, end))) end -= 1;
  const start = /^.*[-._/: ]/.exec(first.slice(0, end))?.[0] ?? "";
  return start.length < 3 ? "" : oneLine(start);
}

interface KeptLabels {
  readonly width: number;
  readonly ellipsis: string;
  readonly labels: ReadonlyMap<string, string>;
}

/** The last labels: a run's names stay the same from frame to frame, in any order of rows. */
let lastLabels: KeptLabels = { width: 0, ellipsis: "", labels: new Map() };

function labelNames(names: readonly string[], width: number, ellipsis: string): ReadonlyMap<string, string> {
  const labels = new Map<string, string>();
  const used = new Set<string>();
  const long: string[] = [];
  for (const name of names) {
    const clean = oneLine(name);
    if (widthOf(clean) > width) {
      long.push(name);
      continue;
    }
    used.add(clean);
    labels.set(name, clean);
  }
  const short = long.length > 0 ? shorten(long.map(oneLine), width, ellipsis) : [];
  for (const [index, name] of long.entries()) {
    const label = short[index] ?? "";
    // The last resort is the name's number among the long names.
    const number = `${ellipsis}${index + 1}`;
    const fits = widthOf(label) <= width && !used.has(label);
    const unique = fits ? label : `${takeColumns(label, width - widthOf(number))}${number}`;
    labels.set(name, unique);
    used.add(unique);
  }
  return labels;
}

/** Matches the signs between words, and the start of a number within a word. */
const division = /([-._/: ]+|(?<=[a-z])(?=\d))/i;

/** The words of a name and the signs between them, in turn. */
type NameParts = readonly string[];

function shorten(names: readonly string[], width: number, ellipsis: string): readonly string[] {
  const all = names.map((name): NameParts => name.split(division));
  const [before, after] = commonEnds(all);
  const first = all[0] ?? [];
  const head = first.slice(0, before).join("");
  const end = after > 0 ? ellipsis : "";
  let own: readonly NameParts[] = all.map((parts) => parts.slice(before, parts.length - after));
  const most = Math.max(...own.map(({ length }) => length));
  for (let word = 0; ; word += 2) {
    const room = width - Math.max(...own.map((parts) => widthOf(parts.join("")))) - end.length;
    if (room >= 0 || word >= most) return own.map((parts) => headIn(head, room, ellipsis) + parts.join("") + end);
    own = abbreviate(own, word);
  }
}

/** As much of the common start as has room. */
function headIn(head: string, room: number, ellipsis: string): string {
  if (widthOf(head) <= room) return head;
  return room <= 0 ? "" : takeColumns(head, room - 1) + ellipsis;
}

/** The number of common parts at the start, and at the end: whole words with their dividers. */
function commonEnds(all: readonly NameParts[]): readonly [number, number] {
  const [first = []] = all;
  // A part of each name must remain.
  const most = Math.min(...all.map(({ length }) => length)) - 1;
  const isCommon = (index: number) => all.every((parts) => parts.at(index) === first.at(index));
  let before = 0;
  while (before + 2 <= most && isCommon(before) && isCommon(before + 1)) before += 2;
  let after = 0;
  while (before + after + 2 <= most && isCommon(-1 - after) && isCommon(-2 - after)) after += 2;
  return [before, after];
}

/** The words at one place, each cut to the fewest letters that distinguish them. */
function abbreviate(all: readonly NameParts[], at: number): readonly NameParts[] {
  const words = [...new Set(all.map((parts) => parts[at] ?? ""))];
  const longest = Math.max(...words.map(widthOf));
  let columns = 1;
  while (columns < longest && new Set(words.map((word) => takeColumns(word, columns))).size < words.length) columns++;
  return all.map((parts) => parts.map((part, index) => (index === at ? takeColumns(part, columns) : part)));
}
