import type { NodeUpdateView } from "#api/update-schemas.ts";
import { isAddress } from "#engine/roster/entry-fields.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import { KcoreError } from "#errors/problem.ts";
import { mayBeMeant } from "#rollout/select.ts";
import type { UpdateSpec } from "#rollout/spec.ts";
import { rosterIfAny } from "../roster/own-roster.ts";

/** Whose hook is run; `entry`: as the roster of the project has it. */
export interface HookNode {
  readonly id: string;
  /** What it is called, there or in the cluster. */
  readonly name: string;
  readonly entry: NodeEntry | undefined;
}

/**
 * Finds out whose hook a controller asks for. Nobody's work is taken away whom the manifest does not mean, as the bastion signed it; and what the roster
 * says of a node counts. What a controller calls it counts only if it is one plain word, and the roster knows nobody else by that: by his id or address, or by
 * a name with the same first label (`a` and `a.example.org`). A host name that the roster knows nobody by is believed. @throws KcoreError UPDATE_UNSIGNED
 */
export function hookNode(project: string, { selector }: UpdateSpec, { id, hostname, dc }: NodeUpdateView): HookNode {
  const entries = entriesOf(project);
  const entry = entries.find((one) => one.id === id);
  const names = [
    ...(isAddress(hostname) && !isOthers(hostname, entry, entries) ? [hostname] : []),
    ...(entry ? [entry.name] : []),
  ];
  const name =
    !plainId.test(id) || isOthers(id, entry, entries)
      ? undefined
      : names.find((own) => mayBeMeant({ id, hostname: own, dc: entry?.dc ?? dc }, selector));
  if (name !== undefined) return { id, name, entry };
  throw new KcoreError({
    code: "UPDATE_UNSIGNED",
    message: `a controller asks for a hook of “${hostname}” (${id}), whom the update does not mean`,
    hint: "name it by its id, or as the roster does; if it is not meant at all, look at that controller: it acts against what was signed",
  });
}

/** Where it is reached: by the roster, else as a controller tells, unless that is another node's. @throws KcoreError UPDATE_UNSIGNED */
export async function hookAddress(
  project: string,
  { name, entry }: HookNode,
  askController: () => Promise<string>,
): Promise<string> {
  if (entry) return entry.address;
  const told = await askController();
  if (isAddress(told) && !isOthers(told, entry, entriesOf(project))) return told;
  throw new KcoreError({
    code: "UPDATE_UNSIGNED",
    message: `a controller says that “${name}” is reached at “${told}”, which is no address of its own`,
    hint: "put the node into the roster; if it is there by another id, look at that controller: it acts against what was signed",
  });
}

/** What reaches a command is one word to every shell, and no option. */
const plainId = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;

function entriesOf(project: string): readonly NodeEntry[] {
  return [...rosterIfAny(project).nodes.values()];
}

function isOthers(word: string, own: NodeEntry | undefined, entries: readonly NodeEntry[]): boolean {
  const isNameOf = ({ id, name, address }: NodeEntry): boolean =>
    id === word || address.toLowerCase() === word.toLowerCase() || firstLabel(name) === firstLabel(word);
  return entries.some((one) => one !== own && isNameOf(one));
}

function firstLabel(name: string): string {
  return name.toLowerCase().split(".", 1)[0] ?? name;
}
