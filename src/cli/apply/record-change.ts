import type { RecordKind, VmView } from "#api/record-schemas.ts";
import { exitCodes } from "#errors/problem.ts";
import type { WantedRecord } from "#manifests/record-manifest.ts";
import { openCluster } from "../cluster/open-cluster.ts";
import type { ClusterFlags } from "../options.ts";
import { differingFields, readManifestRecord, type ManifestChange } from "./change.ts";

/** A record as a controller keeps it. */
export type KeptRecord = Partial<Pick<WantedRecord, "labels" | "spec">>;

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

export async function readKept(kind: RecordKind, name: string, flags: ClusterFlags): Promise<KeptRecord | undefined> {
  return (await openCluster(flags)).ask(async (client) => (await readManifestRecord(client, kind, name)) as KeptRecord);
}

export async function findVm(name: string, flags: ClusterFlags): Promise<VmView | undefined> {
  const { vms } = await (await openCluster(flags)).ask((client) => client.call("listVms", {}));
  return vms.find((vm) => vm.name === name);
}
