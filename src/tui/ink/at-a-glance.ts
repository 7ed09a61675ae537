import type { NodeRow } from "../node-row.ts";
import { stateMark, stateRole, stateLabel } from "./marks.ts";
import { joinFitting, span, type Line, type Span } from "./text.ts";
import type { SceneProps } from "./scene.ts";

interface GlanceProps extends Pick<SceneProps, "theme" | "now"> {
  readonly rows: readonly NodeRow[];
  readonly width: number;
}

/** All nodes in two lines, for a list that shows only some: a mark for each node, and counts of equal work. */
export function glanceLines(props: GlanceProps): readonly Line[] {
  const rows = props.rows.filter(({ isBastion }) => !isBastion);
  return [cellLine({ ...props, rows }), groupLine({ ...props, rows })];
}

/** A mark for each node in the order of the run; with more nodes than columns, the mark of the most urgent in each group. */
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
    // Neighbours of one colour share a span, because measuring spans is slow.
    if (last?.role === mark.role) line[line.length - 1] = span(`${last?.text}${mark.text}`, mark.role);
    else line.push(mark);
  }
  return line;
}

/** “186 running: package nginx”: groups of nodes with equal work, urgent groups first, then large groups; as many as fit. */
function groupLine({ rows, theme, width }: GlanceProps): Line {
  const found = new Map<string, { count: number; readonly row: NodeRow }>();
  for (const row of rows) {
    const words = workWords(row);
    const group = found.get(words);
    if (group) group.count += 1;
    else found.set(words, { count: 1, row });
  }
  const groups = [...found].map(([words, { count, row }]) => ({ text: `${count} ${words}`, count, row }));
  groups.sort((a, b) => a.row.rank - b.row.rank || b.count - a.count);
  const parts = groups.map(({ text, row }): Line => [span(text, stateRole(row.state))]);
  return joinFitting(parts, `  ${theme.glyphs.dot}  `, width);
}

const wordsByRow = new WeakMap<NodeRow, string>();

/** The work of a node in words; cached, because a row never changes. */
function workWords(row: NodeRow): string {
  const before = wordsByRow.get(row);
  if (before !== undefined) return before;
  const hasTitle = row.state === "running" || row.state === "failed";
  const title = hasTitle ? row.item?.title : undefined;
  const words = title === undefined ? stateLabel(row) : `${stateLabel(row)}: ${title}`;
  wordsByRow.set(row, words);
  return words;
}
