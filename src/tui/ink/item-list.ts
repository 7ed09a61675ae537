import { shortDuration } from "#base/units.ts";
import { quietOf, type WorkItem, outcomeLabel } from "../work-item.ts";
import { outcomeMark } from "./marks.ts";
import type { SceneProps } from "./scene.ts";
import type { RowWindow } from "./blocks.ts";
import { placeColumns, rowLines, type ScreenColumn } from "./table.ts";
import { span, type Line } from "./text.ts";

interface ItemListProps extends Pick<SceneProps, "theme" | "now" | "usual"> {
  readonly items: readonly WorkItem[];
  readonly window: RowWindow;
  readonly selected: number;
  readonly width: number;
}

/** The steps of one node, as far as the window shows them. */
export function itemLines({ items, window, selected, theme, width, now, usual }: ItemListProps): readonly Line[] {
  const { glyphs } = theme;
  const columns: readonly ScreenColumn<WorkItem>[] = [
    {
      title: "STEP",
      width: 22,
      grow: 3,
      drop: 0,
      cell: ({ title, outcome }) => [
        span(title, outcome === "failed" ? "failed" : outcome === undefined ? "strong" : "plain"),
      ],
    },
    { title: "STAGE", width: 9, grow: 1, max: 14, drop: 5, cell: ({ stage }) => [span(stage, "muted")] },
    { title: "MODULE", width: 16, grow: 2, max: 24, drop: 6, cell: ({ module }) => [span(module, "muted")] },
    {
      title: "",
      width: 12,
      grow: 1,
      max: 18,
      drop: 3,
      cell: (item) => {
        const quiet = quietOf(item, now, usual);
        if (quiet) return [span(`${glyphs.warning} ${quiet.kind}`, "warning")];
        const mark = outcomeMark(item.outcome, glyphs, now);
        return [span(outcomeLabel(item.outcome), mark.role)];
      },
    },
    {
      title: "TIME",
      width: 6,
      align: "right",
      drop: 2,
      cell: ({ outcome, duration, startedAt }) => [
        span(shortDuration(outcome === undefined ? now - startedAt : (duration ?? 0)), "muted"),
      ],
    },
  ];
  const placed = placeColumns(columns, width - 4);
  const mark = ({ outcome }: WorkItem) => outcomeMark(outcome, glyphs, now);
  return rowLines(placed, items, { window, selected, glyphs, name: "STEP", mark });
}
