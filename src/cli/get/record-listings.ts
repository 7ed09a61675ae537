import { recordSchema, type RecordKind, type VmView } from "#api/record-schemas.ts";
import { recordColumns, vmColumns, type RecordRow } from "#tui/columns/record-columns.ts";
import { KcoreError } from "#errors/problem.ts";
import { filterNodes, type SelectorFlags } from "./listings.ts";
import type { Listing } from "./show-listing.ts";

/** The named VMs, or all, as far as the flags select them. @throws KcoreError OBJECT_UNKNOWN */
export function vmListing(names: readonly string[], flags: SelectorFlags): Listing<VmView> {
  return {
    fetch: async (client) => filterNodes(named("VM", names, (await client.call("listVms", {})).vms), flags),
    key: ({ name }) => name,
    columns: vmColumns,
    none: "no VMs: kcore create vm NAME, or kcore apply -f FILE",
    registers: ["object/", "node/"],
  };
}

/** The networks or images: all, or those named. @throws KcoreError OBJECT_UNKNOWN */
export function recordListing(kind: RecordKind, names: readonly string[]): Listing<RecordRow> {
  return {
    fetch: async (client) => {
      const { objects } = await client.call("listObjects", {});
      const rows = objects.flatMap(({ value, ...object }): RecordRow[] => {
        const { data } = recordSchema(kind).safeParse(object.kind === kind ? value : undefined);
        return data ? [{ ...object, ...data }] : [];
      });
      return named(kind, names, rows);
    },
    key: ({ name }) => name,
    columns: recordColumns(kind),
    none: `no ${kind.toLowerCase()}s: kcore create ${kind.toLowerCase()} NAME`,
    registers: [`object/${kind}/`],
  };
}

function named<Row extends { readonly name: string }>(
  kind: RecordKind,
  names: readonly string[],
  rows: readonly Row[],
) {
  const missing = names.find((wanted) => !rows.some(({ name }) => name === wanted));
  if (missing !== undefined) throw unknownRecord(kind, missing);
  return names.length === 0 ? rows : rows.filter(({ name }) => names.includes(name));
}

export function unknownRecord(kind: RecordKind, name: string): KcoreError {
  const hint = `kcore get ${kind.toLowerCase()}s`;
  return new KcoreError({ code: "OBJECT_UNKNOWN", message: `there is no ${kind} ${name}`, hint });
}
