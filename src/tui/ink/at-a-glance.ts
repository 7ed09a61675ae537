import type { NodeRow } from "../node-row.ts";
import { stateMark, stateRole, stateWord } from "./marks.ts";
import { lineWidth, span, type Line, type Span } from "./text.ts";
import type { Theme } from "./theme.ts";

export interface GlanceProps {
  readonly rows: readonly NodeRow[];
  readonly theme: Theme;
  readonly width: number;
  readonly now: number;
}

/** All nodes where a list shows only some: a cell for each, and what most of them do. */
export function glanceLines(props: GlanceProps): readonly Line[] {
  const rows = props.rows.filter(({ isBastion }) => !isBastion);
  return [cellLine({ ...props, rows }), groupLine({ ...props, rows })];
}

/** A mark for each node in the order of the run; where there are more nodes than columns, of each share the one to look at. */
function cellLine({ rows, theme: { glyphs }, width, now }: GlanceProps): Line {
  const cells = Math.min(rows.length, width - 2);
  const line: Span[] = [span(" ")];
  for (let cell = 0; cell < cells; cell++) {
    const start = Math.floor((cell * rows.length) / cells);
    const end = Math.floor(((cell + 1) * rows.length) / cells);
    let first = rows[start] as NodeRow;
    for (let index = start + 1; index < end; index++) {
      const row = rows[index] as NodeRow;
      if (row.rank < first.rank) first = row;
    }
    const mark = stateMark(first, glyphs, now);
    const last = line.at(-1);
    // Few spans: each of them is measured.
    if (last?.role === mark.role) line[line.length - 1] = span(`${last?.text}${mark.text}`, mark.role);
    else line.push(mark);
  }
  return line;
}

/** “186 running: package nginx”: alike nodes counted, what needs a look first, then the most; as many groups as fit. */
function groupLine({ rows, theme, width }: GlanceProps): Line {
  const found = new Map<string, { count: number; readonly row: NodeRow }>();
  for (const row of rows) {
    const words = wordsOf(row);
    const group = found.get(words);
    if (group) group.count += 1;
    else found.set(words, { count: 1, row });
  }
  const groups = [...found].map(([words, { count, row }]) => ({ text: `${count} ${words}`, count, row }));
  groups.sort((a, b) => a.row.rank - b.row.rank || b.count - a.count);
  let line: Line = [];
  for (const { text, row } of groups) {
    const next = [
      ...line,
      span(line.length === 0 ? " " : `  ${theme.glyphs.dot}  `, "muted"),
      span(text, stateRole(row.state)),
    ];
    if (line.length > 0 && lineWidth(next) > width) break;
    line = next;
  }
  return line;
}

const known = new WeakMap<NodeRow, string>();

/** What a node does in words; kept, as the row is another one when it does something else. */
function wordsOf(row: NodeRow): string {
  const before = known.get(row);
  if (before !== undefined) return before;
  const isTold = row.state === "running" || row.state === "failed";
  const title = isTold ? row.item?.title : undefined;
  const words = title === undefined ? stateWord(row) : `${stateWord(row)}: ${title}`;
  known.set(row, words);
  return words;
}
