import { coarseSince } from "../../columns/column.ts";
import { conflictColumns } from "../../columns/conflict-columns.ts";
import type { Glyphs } from "../theme.ts";
import type { DetailFact, Section } from "./section.ts";
import type { FleetConflict, FleetEdit } from "./snapshot.ts";

export const conflictsSection: Section<FleetConflict> = {
  name: "conflicts",
  title: "conflicts",
  emptyText: "no conflicts",
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
  columns: conflictColumns,
  open: (conflict, _snapshot, { theme, now }) => ({
    title: `conflict ${conflict.id}`,
    facts: [
      ...conflictFacts(conflict, theme.glyphs, now),
      ...(conflict.kind === "edit"
        ? [
            [
              "to settle",
              `kcore conflict ack ${conflict.id}, or kcore conflict take-loser ${conflict.id}`,
              "accent",
            ] as const,
          ]
        : []),
    ],
  }),
  command: ({ id, kind }) => (kind === "edit" ? `kcore conflict ack ${id}` : "kcore get conflicts"),
};

/** Both edits of a conflict with their origins and times; or the nodes of a host name. */
export function conflictFacts(
  { key, kind, winner, loser }: FleetConflict,
  glyphs: Glyphs,
  now: number,
): readonly DetailFact[] {
  const isName = kind === "name";
  const edit = (label: string, { value, origin, at }: FleetEdit): readonly DetailFact[] => [
    [label, value],
    ...(origin === "" ? [] : [["", `${glyphs.dash} by ${origin}, ${coarseSince(at, now)} ago`, "muted"] as const]),
  ];
  return [
    [isName ? "host name" : "register", key, "strong"],
    ...edit(isName ? "kept by" : "won", winner),
    ...edit(isName ? "also" : "lost", loser),
  ];
}
