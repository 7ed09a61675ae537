import { parseEndpoint } from "#api/endpoint.ts";
import { installNode } from "../install/install-node.ts";
import type { InstallRequest } from "../install/request.ts";
import { usualName } from "../roster/find-machine.ts";
import type { Manifest } from "#manifests/read-manifests.ts";
import type { ClusterFlags } from "../options.ts";
import type { RunFlags } from "../watch/run-request.ts";
import { differingFields, readManifestRecord, openForRecords, type ManifestChange } from "./change.ts";

type InstallManifest = Extract<Manifest, { kind: "NodeInstall" }>;

/**
 * Plans a `NodeInstall`: an installation as by `kcore node install`, unless the cluster has it on record and the node
 * is ready.
 */
export async function planNodeInstall(
  { spec }: InstallManifest,
  flags: ClusterFlags & RunFlags,
): Promise<ManifestChange> {
  const given = Object.fromEntries(Object.entries(spec).filter(([, value]) => value !== undefined));
  const request = { ...given, node: spec.node } as InstallRequest;
  const name = spec.hostname ?? usualName(parseEndpoint(spec.node, 9091).host);
  const value = JSON.parse(JSON.stringify(request)) as Record<string, unknown>;
  const place = await openForRecords(flags);
  const found =
    "none" in place
      ? undefined
      : await place.cluster.ask(async (client) => {
          const record = (await readManifestRecord(client, "NodeInstall", name)) as Record<string, unknown> | undefined;
          const { nodes } = await client.call("listNodes", {});
          return { record, status: nodes.find(({ hostname }) => hostname === name)?.status };
        });
  const differences = [
    ...differingFields("cluster", found?.record ?? {}, value),
    ...differingFields("cluster", { status: found?.status ?? "not deployed" }, { status: "ready" }),
  ];
  return {
    outcome: differences.length === 0 ? "unchanged" : found?.record ? "updated" : "created",
    differences,
    notes: [],
    perform: async () => {
      const code = await installNode(request, flags);
      if (code !== 0) return code;
      // This installation may have deployed the first controller.
      const now = await openForRecords(flags);
      if ("cluster" in now)
        await now.cluster.ask((client) => client.call("putObject", { value }, { id: `NodeInstall/${name}` }));
      return 0;
    },
  };
}
