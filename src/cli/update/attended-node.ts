import type { NodeUpdateView } from "#api/update-schemas.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import { KcoreError } from "#errors/problem.ts";
import { mayBeMeant } from "#rollout/select.ts";
import type { UpdateSpec } from "#rollout/spec.ts";
import { rosterIfAny } from "../roster/own-roster.ts";

/** Whose hook is run; `entry`: as the roster of the project has it. */
export interface AttendedNode {
  readonly id: string;
  /** What it is called, there or in the cluster. */
  readonly name: string;
  readonly entry: NodeEntry | undefined;
}

/**
 * Finds out whose hook a controller asks for. Nobody's work is taken away whom the manifest does not mean, as the bastion signed it; and what the roster
 * says of a node counts. What a controller calls it counts only if the roster knows nobody else by that: by his id, or by a name with the same first label
 * (`a` and `a.example.org`). A host name that the roster knows nobody by is believed. @throws KcoreError UPDATE_UNSIGNED
 */
export function attendedNode(
  project: string,
  { selector }: UpdateSpec,
  { id, hostname, dc }: NodeUpdateView,
): AttendedNode {
  const entries = [...rosterIfAny(project).nodes.values()];
  const entry = entries.find((one) => one.id === id);
  const isOthers = (word: string): boolean =>
    entries.some((one) => one !== entry && (one.id === word || firstLabel(one.name) === firstLabel(word)));
  const names = [...(isOthers(hostname) ? [] : [hostname]), ...(entry ? [entry.name] : [])];
  const name = isOthers(id)
    ? undefined
    : names.find((own) => mayBeMeant({ id, hostname: own, dc: entry?.dc ?? dc }, selector));
  if (name !== undefined) return { id, name, entry };
  throw new KcoreError({
    code: "UPDATE_UNSIGNED",
    message: `a controller asks for a hook of “${hostname}” (${id}), whom the update does not mean`,
    hint: "name it by its id, or as the roster does; if it is not meant at all, look at that controller: it acts against what was signed",
  });
}

function firstLabel(name: string): string {
  return name.split(".", 1)[0] ?? name;
}
