import { isActive, reportOf, type RolloutView } from "./view.ts";
import type { Row } from "./records.ts";
import { isOpen } from "./window.ts";

/** Why no node at all may be started now; undefined: they may. */
export function whyNotStartAny({ hasMajority, spec, now }: RolloutView): string | undefined {
  if (!hasMajority) return "a majority of the controllers, which this one does not reach";
  return isOpen(spec.window, now) ? undefined : `the maintenance window, from ${spec.window?.from} UTC`;
}

/**
 * The nodes of a rollout that are down, or may be: not ready, under way, or not fenced by this owner. A former owner can still act on
 * the last ones alone, so whatever it does it takes no more down than are counted here (docs/adr/0515-cluster-updates.md).
 */
export function unavailableOf(view: RolloutView, rows: ReadonlyMap<string, Row>): Set<string> {
  const ids = [...rows].filter(
    ([id, row]) => isActive(row) || view.nodes.get(id)?.isReady !== true || reportOf(view, id) === undefined,
  );
  return new Set(ids.map(([id]) => id));
}

interface Around {
  readonly rows: ReadonlyMap<string, Row>;
  /** Those that are started in the same moment. */
  readonly starts: ReadonlyMap<string, Row>;
  readonly unavailable: ReadonlySet<string>;
  readonly isBack?: boolean;
}

/** Why this node may not be started, or taken back, now; undefined: it may. */
export function whyNotStart(view: RolloutView, id: string, around: Around): string | undefined {
  const node = view.nodes.get(id);
  const name = node?.hostname ?? id;
  const { unavailable, isBack = false } = around;
  if (!node) return `${name}, which is no node of this cluster any more`;
  if (!node.isApproved) return `${name}, which is not approved`;
  // What is to be taken back may be why it is not ready.
  if (!node.isReady && !isBack) return `${name}, which is not ready: ${node.reason ?? "no heartbeat"}`;
  if (!reportOf(view, id) && !isBack) return `${name}, which has not confirmed its owner`;
  const { maxUnavailable } = view.spec.strategy;
  const others = [...unavailable].filter((other) => other !== id);
  const isForced = isBack && view.wishes.rollback?.now === true;
  if (others.length + 1 > maxUnavailable && !isForced)
    return `${others.map((other) => view.nodes.get(other)?.hostname ?? other).join(", ")}: down or under way, and ${maxUnavailable} may be`;
  return node.isController ? whyNotController(view, id, around) : undefined;
}

/** Controllers go one at a time, with the replication of all of them healthy before each; to go back, that is not waited for. */
function whyNotController(view: RolloutView, id: string, { rows, starts, isBack = false }: Around): string | undefined {
  for (const other of view.nodes.values()) {
    if (!other.isController || other.id === id) continue;
    const row = starts.get(other.id) ?? rows.get(other.id);
    if (row && isActive(row)) return `${other.hostname}, a controller that is under way`;
    if (!other.isReady && !isBack) return `${other.hostname}, a controller that is not ready`;
  }
  for (const { hostname, replication } of isBack ? [] : view.nodes.values())
    if (replication !== undefined) return `the replication of ${hostname}: ${replication}`;
  return undefined;
}
