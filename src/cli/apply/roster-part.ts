import { randomUUID } from "node:crypto";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { addNode, setNodeFields } from "#engine/roster/edit.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import type { Plain } from "#engine/roster/flow-yaml.ts";
import { parsePlainYaml } from "#engine/yaml/plain-yaml.ts";
import { KcoreError, type SourcePosition } from "#errors/problem.ts";
import { fileForNew } from "../install/find-machine.ts";
import type { WantedNode } from "../manifests/node-manifest.ts";
import { editRosterFile } from "../roster/edit-roster-file.ts";
import { entryWith, rosterIfAny, rosterText } from "../roster/own-roster.ts";
import { differencesOf, type Difference } from "./change.ts";

type Fields = Readonly<Record<string, Plain>>;

/** The changes of a `Node` in the roster, and the resulting entry. */
export interface RosterPart {
  readonly isNew: boolean;
  readonly entry: NodeEntry;
  readonly differences: readonly Difference[];
  readonly write: () => Promise<void>;
}

/** Maps of an entry are compared without the additions of groups and defaults, which are not the manifest's. */
const ownMaps = ["labels", "vars"] as const;

/**
 * Compares a manifest with the roster. Values that the manifest does not mention stay as they are.
 * @throws KcoreError for a new node without an address, another id than the roster's, and a result that the roster
 * refuses
 */
export function planRoster(
  project: string,
  { name, node, at }: { readonly name: string; readonly node: WantedNode; readonly at: SourcePosition },
): RosterPart {
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
  const before = rosterText(project, file);
  const differences = known
    ? differencesOf("roster", haveOf(known, before), withPath(project, node))
    : differencesOf("roster", {}, node);
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
