import type { ConflictList, ConflictView } from "#api/schemas.ts";
import { valueText } from "../fleet-words.ts";
import type { FleetConflict, FleetEdit } from "../ink/fleet/snapshot.ts";
import { ageColumn, type Column } from "./column.ts";

/** Most characters of a value in a table. */
const longestValue = 48;

export const conflictColumns: readonly Column<FleetConflict>[] = [
  { title: "ID", cell: ({ id }) => id, role: "muted", room: { width: 10, grow: 1, max: 24, drop: 0 } },
  {
    title: "KEY",
    cell: ({ kind, key }) => (kind === "name" ? "(host name)" : key),
    room: { width: 18, grow: 3, max: 60, drop: 0 },
  },
  { title: "WINNER", cell: ({ winner }) => cut(winner.value), room: { width: 12, grow: 2, drop: 0 } },
  { title: "LOSER", cell: losers, role: "muted", room: { width: 12, grow: 2, drop: 0 } },
  ageColumn("AGE", ({ at }) => at, { room: { width: 5, drop: 1 } }),
  { title: "WINNER-FROM", wide: true, cell: ({ winner }) => winner.origin },
  { title: "LOSER-FROM", wide: true, cell: ({ loser }) => loser.origin },
];

/** The newest loser and the number of others; or the other nodes of a host name. */
function losers({ kind, loser, others = 0 }: FleetConflict): string {
  if (kind === "name") return loser.value.replaceAll(" ", "");
  return cut(loser.value) + (others > 0 ? ` (+${others})` : "");
}

function cut(text: string): string {
  return text.length > longestValue ? `${text.slice(0, longestValue - 1)}…` : text;
}

/** A conflict of concurrent edits of one register, as views show it. */
export function conflictOfEdits({ id, key, at, winner, loser, others = [] }: ConflictView): FleetConflict {
  const edit = ({ value, origin, at: time }: ConflictView["winner"]): FleetEdit => ({
    value: valueText(value),
    origin,
    at: time,
  });
  const more = others.length === 0 ? {} : { others: others.length };
  return { id, key, kind: "edit", at, winner: edit(winner), loser: edit(loser), ...more };
}

/** A host name that several nodes have, as views show it. */
export function conflictOfName({ hostname, nodes, keptBy }: ConflictList["names"][number]): FleetConflict {
  const edit = (value: string): FleetEdit => ({ value, origin: "", at: "" });
  const rest = nodes.filter((id) => id !== keptBy).join(", ");
  return { id: `name:${hostname}`, key: hostname, kind: "name", at: "", winner: edit(keptBy), loser: edit(rest) };
}
