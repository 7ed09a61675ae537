import type { NodeUpdateView } from "#api/update-schemas.ts";
import { isAddress } from "#engine/roster/entry-fields.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import { KcoreError } from "#errors/problem.ts";
import { mayBeSelected } from "#rollout/selection.ts";
import type { UpdateSpec } from "#rollout/spec.ts";
import { rosterIfAny } from "../roster/own-roster.ts";

/** The node of a hook. */
export interface HookNode {
  readonly id: string;
  /** The name by which the signed selector includes the node: its name in the cluster, else in the roster. */
  readonly name: string;
  /** The node's entry in the project's roster. */
  readonly entry: NodeEntry | undefined;
}

/**
 * The node for which a controller requests a hook; the signed selector must include it. For a node in the roster the
 * entry's datacenter counts. A controller's name for the node counts only if it is one plain word and belongs to no other
 * node: neither as id or address, nor by the first label of its name (`a` and `a.example.org`).
 * @throws KcoreError UPDATE_UNSIGNED
 */
export function hookNode(project: string, { selector }: UpdateSpec, { id, hostname, dc }: NodeUpdateView): HookNode {
  const entries = entriesOf(project);
  const entry = entries.find((one) => one.id === id);
  const names = [
    ...(isAddress(hostname) && !belongsToOther(hostname, entry, entries) ? [hostname] : []),
    ...(entry ? [entry.name] : []),
  ];
  const name =
    !plainId.test(id) || belongsToOther(id, entry, entries)
      ? undefined
      : names.find((own) => mayBeSelected({ id, hostname: own, dc: entry?.dc ?? dc }, selector));
  if (name !== undefined) return { id, name, entry };
  throw new KcoreError({
    code: "UPDATE_UNSIGNED",
    message: `a controller asks for a hook of “${hostname}” (${id}), whom the update does not mean`,
    hint: "name it by its id, or as the roster does; if it is not meant at all, look at that controller: it acts against what was signed",
  });
}

/** The node's address in the roster, else from a controller. @throws KcoreError UPDATE_UNSIGNED for an address of another node */
export async function hookAddress(
  project: string,
  { name, entry }: HookNode,
  askController: () => Promise<string>,
): Promise<string> {
  if (entry) return entry.address;
  const given = await askController();
  if (isAddress(given) && !belongsToOther(given, entry, entriesOf(project))) return given;
  throw new KcoreError({
    code: "UPDATE_UNSIGNED",
    message: `a controller says that “${name}” is reached at “${given}”, which is no address of its own`,
    hint: "put the node into the roster; if it is there by another id, look at that controller: it acts against what was signed",
  });
}

/** Ids that every shell takes for one word and no option, as commands get them in their environment. */
const plainId = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;

function entriesOf(project: string): readonly NodeEntry[] {
  return [...rosterIfAny(project).nodes.values()];
}

/** Whether a word is the id, the address, or by its first label the name of another node in the roster. */
function belongsToOther(word: string, own: NodeEntry | undefined, entries: readonly NodeEntry[]): boolean {
  const isNameOf = ({ id, name, address }: NodeEntry): boolean =>
    id === word || address.toLowerCase() === word.toLowerCase() || firstLabel(name) === firstLabel(word);
  return entries.some((one) => one !== own && isNameOf(one));
}

function firstLabel(name: string): string {
  return name.toLowerCase().split(".", 1)[0] ?? name;
}
