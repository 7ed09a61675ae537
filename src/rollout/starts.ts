import type { NodePhase, Report, Row } from "./records.ts";
import { isActive, isWished, nameOf, otherOwnerOf, reportOf, type RolloutView } from "./view.ts";
import { illnessOf } from "./well.ts";
import { isInWindow } from "./window.ts";

/** Why no node at all may be started now; undefined: they may. */
export function whyNotStartAny({ spec, now }: RolloutView): string | undefined {
  return isInWindow(spec.window, now) ? undefined : `the maintenance window, from ${spec.window?.from} UTC`;
}

const downPhases: ReadonlySet<NodePhase> = new Set([
  "draining",
  "activating",
  "rebooting",
  "verifying",
  "rolling_back",
]);
const downStates: ReadonlySet<Report["state"]> = new Set(["activating", "rebooting", "rolling_back"]);

/**
 * The nodes of a rollout that are down, or may be: those that are not ready, and those that an order took down or may still take down. A node
 * that did not confirm this owner and generation counts: a former owner can act on it, and on no other (docs/adr/0515-cluster-updates.md). So
 * does one that was given up and did not confirm that: it may get its last order late.
 */
export function unavailableOf(view: RolloutView, rows: ReadonlyMap<string, Row>): Set<string> {
  const isMember = (id: string): boolean => view.nodes.has(id);
  const isDown = (id: string, row: Row): boolean => view.nodes.get(id)?.isReady !== true || mayBeDownBy(view, id, row);
  return new Set([...rows].filter(([id, row]) => isMember(id) && isDown(id, row)).map(([id]) => id));
}

/** The same for those that are taken back: one that is not approved is left out, so the others wait for it only while an order has it down. */
export function unavailableBack(view: RolloutView, rows: ReadonlyMap<string, Row>): Set<string> {
  const isLeftOut = (id: string): boolean => {
    const row = rows.get(id);
    return view.nodes.get(id)?.isApproved === false && !(row && isDownBy(row));
  };
  return new Set([...unavailableOf(view, rows)].filter((id) => !isLeftOut(id)));
}

/** An order took it down or may still do so, whether or not it is ready now. */
function mayBeDownBy(view: RolloutView, id: string, row: Row): boolean {
  const report = reportOf(view, id);
  return !report || isDownBy(row) || downStates.has(report.state) || isUnheard(row, report);
}

export function isDownBy({ phase }: Row): boolean {
  return downPhases.has(phase);
}

/** A node that was given up before it took its last order: that may still reach it. */
export function isUnheard({ phase, seq }: Row, { fence }: Report): boolean {
  return phase === "failed" && fence.seq < seq - 1;
}

/** It runs the target, or will with its next boot, or may run it, or may yet come to, for all that is known. */
export function mayRunTarget(view: RolloutView, id: string, row: Row): boolean {
  const report = reportOf(view, id);
  return !report || [report.present.id, report.lasting?.id].includes(view.target.id) || mayComeTo(row, report);
}

/** It may yet come to run the target. */
export function mayComeTo(row: Row, report: Report): boolean {
  return report.state === "activating" || report.state === "rebooting" || isUnheard(row, report);
}

interface Around {
  readonly rows: ReadonlyMap<string, Row>;
  /** Those that are started in the same moment. */
  readonly starts: ReadonlyMap<string, Row>;
  readonly unavailable: ReadonlySet<string>;
  readonly isBack?: boolean;
}

/** Why this node may not be started, taken down or taken back now; undefined: it may. */
export function whyNotStart(view: RolloutView, id: string, around: Around): string | undefined {
  const node = view.nodes.get(id);
  const name = nameOf(view, id);
  const { unavailable, isBack = false } = around;
  // What is to be taken back may be why it is not well, or does not answer.
  const illness = isBack ? undefined : illnessOf(view, id);
  if (illness !== undefined) return `${name}, which ${illness}`;
  if (!reportOf(view, id) && !isBack) return whyUnconfirmed(view, id);
  const { maxUnavailable } = view.spec.strategy;
  const others = [...unavailable].filter((other) => other !== id);
  if (others.length + 1 > maxUnavailable && !isForced(view, around)) return whyNoRoom(view, others);
  return node?.isController === true ? whyNotController(view, id, around) : undefined;
}

/** It goes back however many are down, and whatever may have become of others. */
function isForced(view: RolloutView, { isBack = false }: Around): boolean {
  return isBack && isWished(view, "rollback") && view.wishes.rollback?.now === true;
}

function whyNoRoom(view: RolloutView, others: readonly string[]): string {
  const untaken = others.flatMap((id) => whyUntaken(view, id) ?? []);
  if (untaken.length > 0) return untaken.join(", ");
  const isSilent = (id: string): boolean => view.nodes.get(id)?.isReady === true && !reportOf(view, id);
  if (others.every(isSilent)) return others.map((id) => whyUnconfirmed(view, id)).join(", ");
  const names = others.map((id) => nameOf(view, id)).join(", ");
  return `${names}: down or under way, and ${view.spec.strategy.maxUnavailable} may be`;
}

export function whyUnconfirmed(view: RolloutView, id: string): string {
  const name = nameOf(view, id);
  const other = otherOwnerOf(view, id);
  if (other !== undefined) return `${name}, which obeys ${other}, so one of them has to take over`;
  const { fence } = view.reports.get(id) ?? {};
  if (fence?.name === view.name && fence.generation > view.generation)
    return `${name}, which has the later generation ${fence.generation} of a former owner: cancel the update, and apply it once more`;
  return whyUntaken(view, id) ?? `${name}, which has not confirmed its owner`;
}

/** Why nothing happens on a node whose updater takes no order, as its agent tells; undefined: no order waits for long. */
export function whyUntaken({ nodes }: RolloutView, id: string): string | undefined {
  const { hostname, orderUntaken } = nodes.get(id) ?? {};
  if (orderUntaken === undefined) return undefined;
  return `${hostname}, whose updater takes no order: systemctl status kcore-updater.path kcore-updater`;
}

/** Controllers go one at a time, with the replication of all of them healthy before each; to go back, that is not waited for. */
function whyNotController(view: RolloutView, id: string, around: Around): string | undefined {
  const { rows, starts, isBack = false } = around;
  for (const other of view.nodes.values()) {
    if (!other.isController || other.id === id) continue;
    const row = starts.get(other.id) ?? rows.get(other.id);
    if (row && (isActive(row) || (!isForced(view, around) && mayBeDownBy(view, other.id, row))))
      return `${other.hostname}, a controller that is, or may be, under way`;
    if (!other.isReady && !isBack) return `${other.hostname}, a controller that is not ready`;
  }
  for (const { hostname, replication } of isBack ? [] : view.nodes.values())
    if (replication !== undefined) return `the replication of ${hostname}: ${replication}`;
  return undefined;
}
