import type { NodeUpdateView } from "#api/update-schemas.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import { KcoreError } from "#errors/problem.ts";
import { mayBeMeant } from "#rollout/select.ts";
import type { UpdateSpec } from "#rollout/spec.ts";
import { rosterIfAny } from "../roster/own-roster.ts";

/** Whose hook is run; `entry`: as the roster of the project has it. */
export interface AttendedNode {
  readonly id: string;
  readonly name: string;
  readonly entry: NodeEntry | undefined;
}

/**
 * Finds out whose hook a controller asks for. What the roster says of a node counts, not what the controller says; and nobody's work is taken away
 * whom the manifest does not mean, as the bastion signed it. @throws KcoreError UPDATE_UNSIGNED
 */
export function attendedNode(
  project: string,
  { selector }: UpdateSpec,
  { id, hostname, dc }: NodeUpdateView,
): AttendedNode {
  const entries = [...rosterIfAny(project).nodes.values()];
  const entry = entries.find((one) => one.id === id);
  const isOthersName = !entry && entries.some(({ name }) => name === hostname);
  const name = entry?.name ?? hostname;
  if (!isOthersName && mayBeMeant({ id, hostname: name, dc: entry?.dc ?? dc }, selector)) return { id, name, entry };
  throw new KcoreError({
    code: "UPDATE_UNSIGNED",
    message: `a controller asks for a hook of “${hostname}” (${id}), whom the update does not mean`,
    hint: "look at that controller: it acts against what was signed",
  });
}
