import { recordSchema, recordSpecs, type RecordKind, type VmView } from "#api/record-schemas.ts";
import { exitCodes, KcoreError, usageError } from "#errors/problem.ts";
import type { WantedRecord } from "#manifests/record-manifest.ts";
import { differingFields, readManifestRecord, type ManifestChange } from "../apply/change.ts";
import { openCluster } from "../cluster/open-cluster.ts";
import { readLabelChanges } from "../node/label-changes.ts";
import type { ClusterFlags } from "../options.ts";

/** Flags of `kcore create` and `kcore set`: the fields of the kind's spec, and labels. */
export type RecordFlags = ClusterFlags & Readonly<Record<string, unknown>> & { readonly label?: readonly string[] };
type KeptRecord = Partial<Pick<WantedRecord, "labels" | "spec">>;

/** Plans a VM, network or image of a manifest. A VM without a node differs, because it is placed anew. */
export async function planRecord(
  { kind, name, labels, spec }: WantedRecord,
  flags: ClusterFlags,
): Promise<ManifestChange> {
  const { ask } = await openCluster(flags);
  const kept = await readKept(kind, name, flags);
  const isHomeless = kind === "VM" && (await findVm(name, flags))?.state === "no node";
  const absent = Object.fromEntries(Object.keys(kept?.spec ?? {}).map((field) => [field, undefined]));
  const differences = [
    ...differingFields("cluster", { labels: {}, ...kept?.spec, ...kept }, { ...absent, ...spec, labels }),
    ...differingFields("cluster", {}, isHomeless ? { node: "(placed anew)" } : {}),
  ];
  return {
    outcome: !kept ? "created" : differences.length > 0 ? "updated" : "unchanged",
    differences,
    notes: [],
    perform: async () => {
      const value = { labels, spec };
      await ask((client) => client.call("putObject", { value }, { id: `${kind}/${name}` }));
      return exitCodes.done;
    },
  };
}

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

export function unknownRecord(kind: RecordKind, name: string): KcoreError {
  const hint = `kcore get ${kind.toLowerCase()}s`;
  return new KcoreError({ code: "OBJECT_UNKNOWN", message: `there is no ${kind} ${name}`, hint });
}

async function readKept(kind: RecordKind, name: string, flags: ClusterFlags): Promise<KeptRecord | undefined> {
  return (await openCluster(flags)).ask(async (client) => (await readManifestRecord(client, kind, name)) as KeptRecord);
}

async function findVm(name: string, flags: ClusterFlags): Promise<VmView | undefined> {
  const { vms } = await (await openCluster(flags)).ask((client) => client.call("listVms", {}));
  return vms.find((vm) => vm.name === name);
}

/** The kept record with the fields that flags give; an empty text takes a field away. @throws KcoreError USAGE */
export function readRecord(kind: RecordKind, flags: RecordFlags, { labels = {}, spec = {} }: KeptRecord = {}) {
  const { set, remove } = readLabelChanges(flags.label ?? []);
  const given = Object.entries(recordSpecs[kind].shape).flatMap(([field, schema]) => {
    const value = flags[field];
    return value === undefined ? [] : [[field, schema.safeParse(value).success ? value : Number(value) || value]];
  });
  const fields = Object.entries({ ...spec, ...Object.fromEntries(given) }).filter(([, value]) => value !== "");
  const { data, error } = recordSchema(kind).safeParse({
    labels: Object.fromEntries(Object.entries({ ...labels, ...set }).filter(([key]) => !remove.includes(key))),
    spec: Object.fromEntries(fields),
  });
  if (data) return data;
  throw new KcoreError(
    error.issues.map(({ path, message }) => usageError(`${path.slice(1).join(".")}: ${message}`).problems[0]!),
  );
}
