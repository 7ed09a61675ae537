import { span, type Line } from "../text.ts";
import type { Glyphs } from "../theme.ts";
import { coarseSince, concernMark, factLines, sinceCell } from "./cells.ts";
import type { Section } from "./section.ts";
import type { FleetConflict, FleetEdit } from "./snapshot.ts";

export const conflictsSection: Section<FleetConflict> = {
  name: "conflicts",
  title: "conflicts",
  none: "no conflicts",
  rows: ({ conflicts }) => conflicts,
  key: ({ id }) => id,
  dc: () => undefined,
  text: ({ id, key, kind, winner, loser }) =>
    [id, key, kind, winner.value, loser.value, winner.origin, loser.origin].join(" "),
  concern: () => 1,
  orders: [
    { name: "key", by: ({ key }) => key },
    { name: "age", by: ({ at }) => at },
  ],
  columns: ({ theme, now }) => [
    { title: "", width: 1, drop: 0, cell: () => [concernMark(1, theme)] },
    {
      title: "WHAT",
      width: 18,
      grow: 3,
      max: 60,
      drop: 0,
      cell: ({ key, kind }) => [span(kind === "name" ? `host name ${key}` : key)],
    },
    { title: "WINNER", width: 12, grow: 2, drop: 0, cell: ({ winner }) => [span(winner.value)] },
    { title: "LOSER", width: 12, grow: 2, drop: 0, cell: ({ loser }) => [span(loser.value, "muted")] },
    { title: "AGE", width: 5, align: "right", drop: 1, cell: ({ at }) => sinceCell(at, now) },
    { title: "ID", width: 10, grow: 1, max: 24, drop: 2, cell: ({ id }) => [span(id, "muted")] },
  ],
  open: (conflict, _snapshot, { theme, now, width }) => ({
    title: `conflict ${conflict.id}`,
    lines: [
      ...conflictLines(conflict, width, theme.glyphs, now),
      ...(conflict.kind === "edit"
        ? factLines(
            "to settle",
            `kcore conflict ack ${conflict.id}, or kcore conflict take-loser ${conflict.id}`,
            width,
            "accent",
          )
        : []),
    ],
  }),
  command: ({ id, kind }) => (kind === "edit" ? `kcore conflict ack ${id}` : "kcore get conflicts"),
};

/** Both edits, who made them and when. */
export function conflictLines(
  { key, kind, winner, loser }: FleetConflict,
  width: number,
  glyphs: Glyphs,
  now: number,
): readonly Line[] {
  const edit = (label: string, { value, origin, at }: FleetEdit): readonly Line[] => [
    ...factLines(label, value, width),
    ...(origin === "" ? [] : factLines("", `${glyphs.dash} by ${origin}, ${coarseSince(at, now)} ago`, width, "muted")),
  ];
  return [
    ...factLines(kind === "name" ? "host name" : "register", key, width, "strong"),
    ...edit(kind === "name" ? "kept by" : "won", winner),
    ...edit(kind === "name" ? "also" : "lost", loser),
  ];
}
