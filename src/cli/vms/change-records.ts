import type { ZodType } from "zod";
import { recordSchema, recordSpecs, type RecordKind } from "#api/record-schemas.ts";
import { KcoreError, usageError } from "#errors/problem.ts";
import { findVm, planRecord, readKept, type KeptRecord } from "../apply/record-change.ts";
import { openCluster } from "../cluster/open-cluster.ts";
import { unknownRecord } from "../get/record-listings.ts";
import { readLabelChanges } from "../node/label-changes.ts";
import type { ClusterFlags } from "../options.ts";

/** Flags of `kcore create` and `kcore set`: the fields of the kind's spec, and labels. */
export type RecordFlags = ClusterFlags & Readonly<Record<string, unknown>> & { readonly label?: readonly string[] };

/** `kcore create`, and with `isKept` `kcore set`. @throws KcoreError OBJECT_EXISTS, OBJECT_UNKNOWN, USAGE */
export async function writeRecord(kind: RecordKind, name: string, flags: RecordFlags, isKept: boolean): Promise<void> {
  const kept = await readKept(kind, name, flags);
  if (!kept && isKept) throw unknownRecord(kind, name);
  if (kept && !isKept)
    throw new KcoreError({ code: "OBJECT_EXISTS", message: `${kind} ${name} is there`, hint: "kcore apply -f FILE" });
  const { outcome, perform } = await planRecord({ kind, name, ...readRecord(kind, flags, kept) }, flags);
  if (outcome !== "unchanged") await perform();
  const vm = kind === "VM" ? await findVm(name, flags) : undefined;
  process.stdout.write(`${kind.toLowerCase()}/${name} ${outcome}${vm ? ` on ${vm.node} (${vm.dc})` : ""}\n`);
}

export async function deleteRecords(kind: RecordKind, names: readonly string[], flags: ClusterFlags): Promise<void> {
  const { ask } = await openCluster(flags);
  for (const name of names) {
    await ask((client) => client.call("removeObject", {}, { id: `${kind}/${name}` }));
    process.stdout.write(`${kind.toLowerCase()}/${name} deleted\n`);
  }
}

/** The kept record with the fields that flags give; an empty text takes a field away. @throws KcoreError USAGE */
function readRecord(kind: RecordKind, flags: RecordFlags, { labels = {}, spec = {} }: KeptRecord = {}) {
  const { set, remove } = readLabelChanges(flags.label ?? []);
  const given = Object.entries<ZodType>(recordSpecs[kind].shape).flatMap(([field, schema]): [string, unknown][] => {
    const value = flags[field];
    return value === undefined ? [] : [[field, schema.safeParse(value).success ? value : Number(value) || value]];
  });
  const fields = Object.entries({ ...spec, ...Object.fromEntries<unknown>(given) }).filter(([, value]) => value !== "");
  const { data, error } = recordSchema(kind).safeParse({
    labels: Object.fromEntries(Object.entries({ ...labels, ...set }).filter(([key]) => !remove.includes(key))),
    spec: Object.fromEntries(fields),
  });
  if (data) return data;
  throw new KcoreError(
    error.issues.map(({ path, message }) => usageError(`${path.slice(1).join(".")}: ${message}`).problems[0]!),
  );
}
