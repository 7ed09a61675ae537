import type { NodeUpdateView, UpdateView } from "#api/update-schemas.ts";
import { cleanLine } from "#engine/events/clean.ts";
import { doneOf, logOf, troubleOf } from "./draw-update.ts";
import { hasEnded } from "#rollout/records.ts";

/** One thing that changed in a rollout: the whole of it, or a node. */
export type Transition =
  | ({ readonly type: "update" } & Pick<
      UpdateView,
      "name" | "generation" | "phase" | "approvalStatus" | "nodes" | "done" | "failed" | "waits" | "reason"
    > & { readonly owner: string })
  | ({ readonly type: "node"; readonly name: string; readonly generation: number } & {
      readonly node: NodeUpdateView;
    });

/** What is another than it was, the whole first where it begins and last where it ends. At first: all that is not waiting for its turn. */
export function transitionsOf(before: UpdateView | undefined, now: UpdateView): readonly Transition[] {
  const { name, generation } = now;
  const earlier = new Map(before?.nodeStatus.map((node) => [node.id, signatureOf(node)]));
  const isSame = before?.generation === generation;
  const nodes = now.nodeStatus.filter((node) =>
    isSame ? earlier.get(node.id) !== signatureOf(node) : node.phase !== "pending",
  );
  const [whole, formerly] = [wholeOf(now), before && wholeOf(before)];
  const wholes: readonly Transition[] = JSON.stringify(whole) === JSON.stringify(formerly) ? [] : [whole];
  const each = nodes.map((node): Transition => ({ type: "node", name, generation, node }));
  return hasEnded(now.phase) ? [...each, ...wholes] : [...wholes, ...each];
}

function wholeOf(view: UpdateView): Transition {
  const { name, generation, phase, approvalStatus, nodes, done, failed, waits, reason, owner } = view;
  return {
    type: "update",
    name,
    generation,
    phase,
    approvalStatus,
    nodes,
    done,
    failed,
    waits,
    reason,
    owner: owner.endpoint ?? owner.id,
  };
}

/** A node without what changes all the time. */
function signatureOf({ phase, failure, hook }: NodeUpdateView): string {
  return JSON.stringify([phase, failure, hook]);
}

/** A transition as one line, with the log of a node that failed indented below it. */
export function drawTransition(transition: Transition): string {
  const log = transition.type === "node" ? logOf(transition.node) : [];
  return [cleanLine(textOf(transition)), ...log].join("\n");
}

function textOf(transition: Transition): string {
  if (transition.type === "node") {
    const { hostname, dc, phase, hook } = transition.node;
    const more = troubleOf(transition.node) || (hook === undefined ? movedOf(transition.node) : `the bastion: ${hook}`);
    return `${hostname} (${dc}) ${phase}${more === "" ? "" : `: ${more}`}`;
  }
  const { name, phase, generation, nodes, failed, done, waits, reason } = transition;
  const counts = `${doneOf({ done, nodes })} done${failed > 0 ? `, ${failed} failed` : ""}`;
  const why = [reason, waits && `waits for ${waits}`, nextOf(transition)].filter(Boolean).join("; ");
  return `${name} ${phase}, generation ${generation}, ${counts}${why === "" ? "" : `: ${why}`}`;
}

function movedOf({ phase, currentVersion, targetVersion }: NodeUpdateView): string {
  return phase === "succeeded" && targetVersion !== "" ? `runs ${currentVersion}` : "";
}

/** What an operator types next, where it is waited for. */
export function nextOf({
  name,
  phase,
  waits,
}: Pick<UpdateView, "name" | "phase"> & { readonly waits?: string | undefined }): string | undefined {
  if (waits !== undefined && /(?:^|; )approval/.test(waits)) return `kcore update cluster approve ${name}`;
  if (phase === "rolling_out" && waits?.startsWith("promotion")) return `kcore update cluster promote ${name}`;
  return undefined;
}
