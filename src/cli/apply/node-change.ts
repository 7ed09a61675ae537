import type { ApiClient } from "#api/client.ts";
import type { NodeDetail, Taint } from "#api/schemas.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import type { Manifest } from "../manifests/read-manifests.ts";
import type { WantedNode } from "../manifests/node-manifest.ts";
import type { ClusterFlags } from "../options.ts";
import { findProject } from "../project/find-project.ts";
import { differencesOf, type Change, type Difference } from "./change.ts";
import { orUnknown, readRecord, recordPlace } from "./record-place.ts";
import { planRoster } from "./roster-part.ts";

type NodeManifest = Extract<Manifest, { kind: "Node" }>;

/** What a `Node` changes: its roster entry, and what the cluster expects of it. */
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
      // The roster first: what is recorded can be deployed.
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
  const labels = labelChange(node.labels, record?.node?.labels, detail);
  const taints = taintChange(node.taints, record?.node?.taints, detail);
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
        if (labels.differences.length > 0) await client.call("setLabels", labels.change, { id });
        if (taints.differences.length > 0) await client.call("setTaints", taints.change, { id });
        await client.call("putObject", { value }, { id: `Node/${name}` });
      });
    },
  };
}

/** Labels to set, and those that the manifest gave before and gives no more. */
function labelChange(
  wanted: Readonly<Record<string, string>> | undefined,
  former: Readonly<Record<string, string>> | undefined,
  detail: NodeDetail | undefined,
) {
  const set = Object.fromEntries(Object.entries(wanted ?? {}).filter(([key, value]) => detail?.labels[key] !== value));
  const remove = Object.keys(wanted === undefined ? {} : (former ?? {})).filter(
    (key) => !Object.hasOwn(wanted ?? {}, key) && Object.hasOwn(detail?.labels ?? {}, key),
  );
  const differences: Difference[] = [...Object.keys(set), ...remove].map((key) => ({
    in: "cluster",
    field: `label ${key}`,
    have: detail?.labels[key],
    want: set[key],
  }));
  return { change: { set, remove }, differences };
}

function taintChange(
  wanted: readonly Taint[] | undefined,
  former: readonly Taint[] | undefined,
  detail: NodeDetail | undefined,
) {
  const have = (key: string): Taint | undefined => detail?.taints.find((taint) => taint.key === key);
  const text = (taint: Taint | undefined): string | undefined => taint && `${taint.value}:${taint.effect}`;
  const set = (wanted ?? []).filter((taint) => text(have(taint.key)) !== text(taint));
  const remove = (wanted === undefined ? [] : (former ?? []))
    .map(({ key }) => key)
    .filter((key) => !wanted?.some((taint) => taint.key === key) && have(key) !== undefined);
  const differences: Difference[] = [...set.map(({ key }) => key), ...remove].map((key) => ({
    in: "cluster",
    field: `taint ${key}`,
    have: text(have(key)),
    want: text(set.find((taint) => taint.key === key)),
  }));
  return { change: { set: [...set], remove }, differences };
}
