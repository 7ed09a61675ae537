import type { ApiClient } from "#api/client.ts";
import type { Taint } from "#api/schemas.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import type { Manifest } from "../manifests/read-manifests.ts";
import type { WantedNode } from "../manifests/node-manifest.ts";
import type { ClusterFlags } from "../options.ts";
import { findProject } from "../project/find-project.ts";
import { differencesOf, type Change, type Difference } from "./change.ts";
import { orUnknown, readRecord, recordPlace } from "./record-place.ts";
import { planRoster } from "./roster-part.ts";

type NodeManifest = Extract<Manifest, { kind: "Node" }>;

/** The changes of a `Node`: its roster entry, and the cluster's expectations. */
export async function planNode(manifest: NodeManifest, flags: ClusterFlags): Promise<Change> {
  const project = findProject(flags.project);
  const roster = planRoster(project, manifest);
  const place = await recordPlace(flags);
  const part =
    "none" in place
      ? { isNew: true, differences: [], perform: () => Promise.resolve() }
      : await planRecord(manifest, roster.entry, (work) => place.cluster.ask(work));
  const differences = [...roster.differences, ...part.differences];
  const isNew = roster.isNew && part.isNew;
  return {
    outcome: differences.length === 0 ? "unchanged" : isNew ? "created" : "updated",
    differences,
    notes: "none" in place ? [`${place.none}: deploying the node records it`] : [],
    perform: async () => {
      // The roster first: a recorded node can be deployed.
      await roster.write();
      await part.perform();
      return 0;
    },
  };
}

type Ask = <Result>(work: (client: ApiClient) => Promise<Result>) => Promise<Result>;

interface RecordPart {
  readonly isNew: boolean;
  readonly differences: readonly Difference[];
  readonly perform: () => Promise<void>;
}

async function planRecord({ name, node }: NodeManifest, entry: NodeEntry, ask: Ask): Promise<RecordPart> {
  const { id, roles, dc, address } = entry;
  const { record, detail } = await ask(async (client) => ({
    record: (await readRecord(client, "Node", name)) as { readonly node?: WantedNode } | undefined,
    detail: await orUnknown(() => client.call("getNode", {}, { id })),
  }));
  const expected = { name, roles: [...roles], dc, address };
  const labels = changeOf("label", detail?.labels, node.labels, record?.node?.labels);
  const taints = changeOf("taint", detail && byKey(detail.taints), byKey(node.taints), byKey(record?.node?.taints));
  const value = { id, node: JSON.parse(JSON.stringify(node)) as Record<string, unknown> };
  const differences = [
    ...differencesOf("cluster", { ...detail?.expected }, expected),
    ...labels.differences,
    ...taints.differences,
    ...(record === undefined ? [{ in: "cluster" as const, field: "manifest", have: undefined, want: "recorded" }] : []),
    ...differencesOf("cluster", { manifest: record ?? value }, { manifest: value }),
  ];
  return {
    isNew: record === undefined,
    differences,
    perform: async () => {
      if (differences.length === 0) return;
      await ask(async (client) => {
        if (differencesOf("cluster", { ...detail?.expected }, expected).length > 0)
          await client.call("setExpected", { ...expected, source: "manifest" }, { id });
        if (labels.differences.length > 0)
          await client.call("setLabels", { set: labels.set, remove: labels.remove }, { id });
        if (taints.differences.length > 0) {
          const set = (node.taints ?? []).filter(({ key }) => Object.hasOwn(taints.set, key));
          await client.call("setTaints", { set, remove: taints.remove }, { id });
        }
        await client.call("putObject", { value }, { id: `Node/${name}` });
      });
    },
  };
}

type Texts = Readonly<Record<string, string>>;

function byKey(taints: readonly Taint[] | undefined): Texts | undefined {
  return taints && Object.fromEntries(taints.map(({ key, value, effect }) => [key, `${value}:${effect}`]));
}

/** The keys to set, and those that the manifest gave before and gives no more. */
function changeOf(what: string, have: Texts = {}, wanted: Texts | undefined, former: Texts = {}) {
  const set = Object.fromEntries(Object.entries(wanted ?? {}).filter(([key, value]) => have[key] !== value));
  const remove = Object.keys(wanted === undefined ? {} : former).filter(
    (key) => !Object.hasOwn(wanted ?? {}, key) && Object.hasOwn(have, key),
  );
  const differences: Difference[] = [...Object.keys(set), ...remove].map((key) => ({
    in: "cluster",
    field: `${what} ${key}`,
    have: have[key],
    want: set[key],
  }));
  return { set, remove, differences };
}
