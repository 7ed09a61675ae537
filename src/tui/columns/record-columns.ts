import type { ObjectView } from "#api/controller-schemas.ts";
import { recordSpecs, type RecordKind, type VmView } from "#api/record-schemas.ts";
import { formatBinary } from "#base/units.ts";
import { labelPairs } from "../fleet-words.ts";
import { ageColumn, type Column } from "./column.ts";

/** A record of any kind: the fields of its spec are columns. */
export type RecordRow = Omit<ObjectView, "value" | "kind"> & {
  readonly labels: Readonly<Record<string, string>>;
  readonly spec: Readonly<Record<string, unknown>>;
};

export function recordColumns(kind: RecordKind): readonly Column<RecordRow>[] {
  return [
    { title: "NAME", cell: ({ name }) => name },
    ...Object.keys(recordSpecs[kind].shape).map((field): Column<RecordRow> => ({
      title: field.replaceAll(/[A-Z]/g, (letter) => `-${letter}`).toUpperCase(),
      cell: ({ spec }) => valueText(field, spec[field]),
    })),
    ageColumn("AGE", ({ at }) => at),
    { title: "LABELS", wide: true, cell: ({ labels }) => labelPairs(labels).join(",") },
  ];
}

export const vmColumns: readonly Column<VmView>[] = [
  { title: "NAME", cell: ({ name }) => name },
  { title: "STATE", cell: ({ state }) => state },
  { title: "NODE", cell: ({ node }) => node || "-" },
  { title: "DC", cell: ({ dc }) => dc || "-" },
  ...recordColumns("VM").filter(({ title }) => !["NAME", "NODE", "DC", "IMAGE-SHA256"].includes(title)),
  { title: "PROBLEMS", wide: true, cell: ({ problems }) => problems.join("; ") || "-" },
];

function valueText(field: string, value: unknown = "-"): string {
  return typeof value === "number" && ["memory", "disk"].includes(field) ? formatBinary(value) : String(value) || "-";
}
