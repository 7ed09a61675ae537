import { resolve } from "node:path";
import { formatEndpoint, parseEndpoint } from "#api/endpoint.ts";
import { KcoreError } from "#errors/problem.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { addController, contextFolder, endpointsOf, readConfig } from "#pki/contexts.ts";
import { makeCluster } from "../cluster/new-cluster.ts";
import { contextHome, kcoreHome } from "../process/kcore-home.ts";
import type { Manifest } from "#manifests/read-manifests.ts";
import type { ClusterFlags } from "../options.ts";
import { readManifestRecord, openForRecords, type ManifestChange, type ManifestDifference } from "./change.ts";

type ClusterManifest = Extract<Manifest, { kind: "Cluster" }>;
type Flags = ClusterFlags & { readonly passphraseFile?: string };

/**
 * Plans a `Cluster`: it makes the context with its CA, or adds the controller to the existing context. A manifest never
 * replaces the CA of an existing context, since each repeated apply would replace the CA again.
 * @throws KcoreError USAGE for another `certsDir` than the context's folder, or an invalid controller; CONFIG_INVALID
 */
export async function planCluster({ name, spec, at }: ClusterManifest, flags: Flags): Promise<ManifestChange> {
  const place = contextHome();
  const { contexts } = await readConfig(place);
  const entry = Object.hasOwn(contexts, name) ? contexts[name] : undefined;
  const folder = contextFolder(kcoreHome(), name);
  if (spec.certsDir !== undefined && resolve(spec.certsDir) !== resolve(folder))
    throw new KcoreError({
      code: "USAGE",
      message: `the certificates of “${name}” cannot lie in ${spec.certsDir}`,
      at,
      hint: `leave certsDir out: they lie in ${folder}; KCORE_HOME moves all contexts`,
    });
  const controllers = spec.controller === undefined ? [] : [formatEndpoint(parseEndpoint(spec.controller))];
  const known = entry ? endpointsOf(entry).map((text) => formatEndpoint(parseEndpoint(text))) : [];
  const missing = controllers.filter((endpoint) => !known.includes(endpoint));
  const local: ManifestDifference[] = [
    ...(entry ? [] : [{ in: "context" as const, field: name, have: undefined, want: folder }]),
    ...missing.map((want) => ({ in: "context" as const, field: "controller", have: undefined, want })),
  ];
  const value = spec.controller === undefined ? {} : { controller: controllers[0] };
  const record = entry ? await planRecord(name, value, flags) : undefined;
  return {
    outcome: !entry ? "created" : local.length + (record?.differences.length ?? 0) === 0 ? "unchanged" : "updated",
    differences: [...local, ...(record?.differences ?? [])],
    notes: record?.notes ?? [],
    perform: async () => {
      const { passphraseFile, project } = flags;
      if (!entry)
        await makeCluster({
          context: name,
          controllers,
          force: spec.force,
          ...omitUndefined({ passphraseFile, project }),
        });
      for (const endpoint of missing) await addController(place, name, endpoint);
      await record?.write();
      return 0;
    },
  };
}

interface RecordChange {
  readonly differences: readonly ManifestDifference[];
  readonly notes: readonly string[];
  readonly write: () => Promise<void>;
}

/** Plans the cluster's record of the manifest. Without a controller that answers, it notes that nothing is recorded. */
async function planRecord(name: string, value: Record<string, unknown>, flags: ClusterFlags): Promise<RecordChange> {
  const later = (why: string): RecordChange => ({
    differences: [],
    notes: [`not recorded in the cluster: ${why}`],
    write: () => Promise.resolve(),
  });
  const place = await openForRecords({ ...flags, context: name });
  if ("none" in place) return later(place.none);
  try {
    const record = await place.cluster.ask((client) => readManifestRecord(client, "Cluster", name));
    const isSame = JSON.stringify(record) === JSON.stringify(value);
    return {
      differences: isSame ? [] : [{ in: "cluster", field: "manifest", have: record, want: value }],
      notes: [],
      write: async () => {
        if (!isSame)
          await place.cluster.ask((client) => client.call("putObject", { value }, { id: `Cluster/${name}` }));
      },
    };
  } catch (error) {
    if (error instanceof KcoreError && error.problems.every(({ code }) => code === "API_UNREACHABLE"))
      return later("no controller answers yet");
    throw error;
  }
}
