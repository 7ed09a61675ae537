import { randomUUID } from "node:crypto";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import type { ApiClient } from "#api/client.ts";
import type { Taint } from "#api/schemas.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import { addNode, setNodeFields } from "#engine/roster/edit.ts";
import type { Plain } from "#engine/roster/flow-yaml.ts";
import { parsePlainYaml } from "#engine/yaml/plain-yaml.ts";
import { KcoreError, type SourcePosition } from "#errors/problem.ts";
import type { Manifest } from "#manifests/read-manifests.ts";
import type { WantedNode } from "#manifests/node-manifest.ts";
import type { ClusterFlags } from "../options.ts";
import { findProject } from "../project/find-project.ts";
import {
  differingFields,
  unlessMissing,
  readManifestRecord,
  openForRecords,
  type ManifestChange,
  type ManifestDifference,
} from "./change.ts";
import { fileForNew } from "../roster/find-machine.ts";
import { editRosterFile, entryWith, rosterIfAny, readRosterText } from "../roster/own-roster.ts";

type NodeManifest = Extract<Manifest, { kind: "Node" }>;

/** Plans a `Node`: its roster entry, and in the cluster its expectations, labels, taints and record. */
export async function planNode(manifest: NodeManifest, flags: ClusterFlags): Promise<ManifestChange> {
  const project = findProject(flags.project);
  const roster = planRoster(project, manifest);
  const place = await openForRecords(flags);
  const recordChange =
    "none" in place
      ? { isNew: true, differences: [], perform: () => Promise.resolve() }
      : await planRecord(manifest, roster.entry, (work) => place.cluster.ask(work));
  const differences = [...roster.differences, ...recordChange.differences];
  const isNew = roster.isNew && recordChange.isNew;
  return {
    outcome: differences.length === 0 ? "unchanged" : isNew ? "created" : "updated",
    differences,
    notes: "none" in place ? [`${place.none}: deploying the node records it`] : [],
    perform: async () => {
      // The roster comes first: with its entry, the node can be deployed even if the cluster's part fails.
      await roster.write();
      await recordChange.perform();
      return 0;
    },
  };
}

type AskCluster = <Result>(work: (client: ApiClient) => Promise<Result>) => Promise<Result>;

async function planRecord({ name, node }: NodeManifest, entry: NodeEntry, ask: AskCluster) {
  const { id, roles, dc, address } = entry;
  const { record, detail } = await ask(async (client) => ({
    record: (await readManifestRecord(client, "Node", name)) as { readonly node?: WantedNode } | undefined,
    detail: await unlessMissing(() => client.call("getNode", {}, { id })),
  }));
  const expected = { name, roles: [...roles], dc, address };
  const labels = keyChanges("label", detail?.labels, node.labels, record?.node?.labels);
  const taints = keyChanges("taint", detail && byKey(detail.taints), byKey(node.taints), byKey(record?.node?.taints));
  const value = { id, node: JSON.parse(JSON.stringify(node)) as Record<string, unknown> };
  const differences = [
    ...differingFields("cluster", { ...detail?.expected }, expected),
    ...labels.differences,
    ...taints.differences,
    ...(record === undefined ? [{ in: "cluster" as const, field: "manifest", have: undefined, want: "recorded" }] : []),
    ...differingFields("cluster", { manifest: record ?? value }, { manifest: value }),
  ];
  return {
    isNew: record === undefined,
    differences,
    perform: async () => {
      if (differences.length === 0) return;
      await ask(async (client) => {
        if (differingFields("cluster", { ...detail?.expected }, expected).length > 0)
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

/** The keys to set, and the keys to remove, which the former manifest gave and this one does not. */
function keyChanges(what: string, have: Texts = {}, wanted: Texts | undefined, former: Texts = {}) {
  const set = Object.fromEntries(Object.entries(wanted ?? {}).filter(([key, value]) => have[key] !== value));
  const remove = Object.keys(wanted === undefined ? {} : former).filter(
    (key) => !Object.hasOwn(wanted ?? {}, key) && Object.hasOwn(have, key),
  );
  const differences: ManifestDifference[] = [...Object.keys(set), ...remove].map((key) => ({
    in: "cluster",
    field: `${what} ${key}`,
    have: have[key],
    want: set[key],
  }));
  return { set, remove, differences };
}

type Fields = Readonly<Record<string, Plain>>;

/** Maps of which only the entry's own keys are compared: keys from groups and defaults are not the manifest's. */
const ownMaps = ["labels", "vars"] as const;

/**
 * Compares a manifest with the roster. Values that the manifest does not mention stay as they are.
 * @throws KcoreError for a new node that needs an address and has none, another id than the roster's, and a result that
 * the roster refuses
 */
function planRoster(
  project: string,
  { name, node, at }: { readonly name: string; readonly node: WantedNode; readonly at: SourcePosition },
) {
  const roster = rosterIfAny(project);
  const known = roster.nodes.get(name);
  const file = roster.positions.get(name)?.file ?? fileForNew(project, roster);
  if (known && node.id !== undefined && node.id !== known.id)
    throw new KcoreError({
      code: "ROSTER_DUPLICATE",
      message: `“${name}” is in the roster with the id ${known.id}, the manifest says ${node.id}`,
      at,
      hint: "an id never changes: give the machine another name, or correct the roster by hand",
    });
  if (!known && node.address === undefined && node.transport !== "local")
    throw new KcoreError({
      code: "YAML_KEY_MISSING",
      message: `“${name}” is new, and nothing says at which address it is`,
      at,
      hint: "spec: { address: 192.0.2.11 }, or the annotation metalk8s.scality.com/ssh-host",
    });
  const before = readRosterText(project, file);
  const differences = known
    ? differingFields("roster", haveOf(known, before), withPath(project, node))
    : differingFields("roster", {}, node);
  const wanted = Object.fromEntries(differences.map(({ field }) => [field, node[field as keyof WantedNode]])) as Fields;
  const fresh = { ...(node as Fields), id: node.id ?? randomUUID() };
  const change = (text: string): string =>
    known ? setNodeFields({ file, text }, name, wanted) : addNode({ file, text }, name, fresh);
  const text = known && differences.length === 0 ? before : change(before);
  const entry = known && text === before ? known : entryWith(project, { file, text }, name);
  return {
    isNew: !known,
    entry,
    differences,
    write: () => editRosterFile(project, file, ({ text: present }) => (present === before ? text : change(present))),
  };
}

function haveOf(known: NodeEntry, text: string): Record<string, unknown> {
  const written = (parsePlainYaml(text) as { nodes?: Record<string, Record<string, unknown> | null> }).nodes;
  const own = written?.[known.name] ?? {};
  return { ...known, ...Object.fromEntries(ownMaps.map((field) => [field, own[field] ?? {}])) };
}

function withPath(project: string, node: WantedNode): Record<string, unknown> {
  const { identityFile } = node;
  if (identityFile === undefined) return node;
  const path = identityFile.startsWith("~/") ? join(homedir(), identityFile.slice(2)) : resolve(project, identityFile);
  return { ...node, identityFile: path };
}
