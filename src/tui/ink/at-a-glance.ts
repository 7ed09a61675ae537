import type { NodeRow } from "../node-row.ts";
import { stateMark, stateRole, stateWord } from "./marks.ts";
import { lineWidth, span, type Line } from "./text.ts";
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
  const shares = Array.from({ length: cells }, (_, cell) =>
    rows.slice(Math.floor((cell * rows.length) / cells), Math.floor(((cell + 1) * rows.length) / cells)),
  );
  const first = (share: readonly NodeRow[]) => share.reduce((one, other) => (other.rank < one.rank ? other : one));
  return [span(" "), ...shares.map((share) => stateMark(first(share), glyphs, now))];
}

/** “186 running: package nginx”: alike nodes counted, what needs a look first, then the most; as many groups as fit. */
function groupLine({ rows, theme, width }: GlanceProps): Line {
  const groups = [...Map.groupBy(rows, (row) => `${stateWord(row)}${doing(row)}`)].map(([words, alike]) => ({
    text: `${alike.length} ${words}`,
    count: alike.length,
    row: alike[0] as NodeRow,
  }));
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

function doing({ state, item }: NodeRow): string {
  const isBusy = state === "running" || state === "failed";
  return isBusy && item ? `: ${item.title}` : "";
}
