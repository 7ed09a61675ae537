import type { NodeAssignment, NodePhase, Report } from "./records.ts";
import {
  isActive,
  isRequested,
  hostnameIn,
  notReadyReason,
  otherOwnerOf,
  reportOf,
  type RolloutInput,
} from "./rollout-input.ts";
import { isInWindow } from "./window.ts";

const downPhases: ReadonlySet<NodePhase> = new Set([
  "draining",
  "activating",
  "rebooting",
  "verifying",
  "rolling_back",
]);
const downStates: ReadonlySet<Report["state"]> = new Set(["activating", "rebooting", "rolling_back"]);

/** The rollout's nodes before the next start; addStart adds each node that is started. */
export interface StartContext {
  readonly rows: Map<string, NodeAssignment>;
  /** The nodes that are down, or may be. */
  readonly unavailable: Set<string>;
  /** Whether the starts are rollbacks. */
  readonly isBack: boolean;
}

/**
 * Collects the nodes that are, or may be, down. A node that did not confirm this owner and generation counts: a former owner can act on such
 * nodes alone (docs/adr/0515-cluster-updates.md). In a rollback, a node that is not approved counts only while an order has it down.
 */
export function startContextOf(
  input: RolloutInput,
  rows: ReadonlyMap<string, NodeAssignment>,
  isBack = false,
): StartContext {
  const unavailable = new Set<string>();
  for (const [id, row] of rows) {
    const node = input.nodes.get(id);
    if (!node || (isBack && !node.isApproved && !isDownBy(row))) continue;
    if (!node.isReady || mayBeDownBy(input, id, row)) unavailable.add(id);
  }
  return { rows: new Map(rows), unavailable, isBack };
}

export function addStart({ rows, unavailable }: StartContext, id: string, row: NodeAssignment): void {
  rows.set(id, row);
  if (isDownBy(row)) unavailable.add(id);
}

function isDownBy({ phase }: NodeAssignment): boolean {
  return downPhases.has(phase);
}

/** Whether an order took the node down or may still do so, even if the node is ready now. */
function mayBeDownBy(input: RolloutInput, id: string, row: NodeAssignment): boolean {
  const report = reportOf(input, id);
  return !report || isDownBy(row) || downStates.has(report.state) || mayGetLastOrder(row, report);
}

/** Whether the owner gave the node up before it accepted its last order, which may still reach the node. */
function mayGetLastOrder({ phase, seq }: NodeAssignment, { fence }: Report): boolean {
  return phase === "failed" && fence.seq < seq - 1;
}

/** Whether, by its last report, the node runs the target, boots it next, or may yet come to run it. A node without a report may. */
export function mayRunTarget(input: RolloutInput, id: string, row: NodeAssignment): boolean {
  const report = reportOf(input, id);
  return !report || [report.present.id, report.lasting?.id].includes(input.target.id) || mayBringTarget(row, report);
}

/** Whether an order under way, or one that may still reach the node, can bring the target into use. */
export function mayBringTarget(row: NodeAssignment, report: Report): boolean {
  return report.state === "activating" || report.state === "rebooting" || mayGetLastOrder(row, report);
}

/** The reason why no node may be started at the moment; undefined inside of the window, or without one. */
export function whyOutsideWindow({ spec, now }: RolloutInput): string | undefined {
  return isInWindow(spec.window, now) ? undefined : `the maintenance window, from ${spec.window?.from} UTC`;
}

/** The reason why this node may not be started, taken down or taken back now; undefined if it may. */
export function whyNotStart(input: RolloutInput, id: string, context: StartContext): string | undefined {
  const { unavailable, isBack } = context;
  if (!isBack) {
    // The update itself may have made a node not ready or silent, so neither prevents going back.
    const notReady = notReadyReason(input, id);
    if (notReady !== undefined) return `${hostnameIn(input, id)}, which ${notReady}`;
    if (!reportOf(input, id)) return whyUnconfirmed(input, id);
  }
  const others = [...unavailable].filter((other) => other !== id);
  if (others.length + 1 > input.spec.strategy.maxUnavailable && !isForced(input, context))
    return whyNoRoom(input, others);
  return input.nodes.get(id)?.isController === true ? whyNotController(input, id, context) : undefined;
}

/** Whether an operator requested a rollback that ignores maxUnavailable. */
function isForced(input: RolloutInput, { isBack }: StartContext): boolean {
  return isBack && isRequested(input, "rollback") && input.requests.rollback?.now === true;
}

function whyNoRoom(input: RolloutInput, others: readonly string[]): string {
  const untaken = others.flatMap((id) => whyUntaken(input, id) ?? []);
  if (untaken.length > 0) return untaken.join(", ");
  const isSilent = (id: string): boolean => input.nodes.get(id)?.isReady === true && !reportOf(input, id);
  if (others.every(isSilent)) return others.map((id) => whyUnconfirmed(input, id)).join(", ");
  const names = others.map((id) => hostnameIn(input, id)).join(", ");
  return `${names}: down or under way, and ${input.spec.strategy.maxUnavailable} may be`;
}

/** The reason to wait for a node that has not reported to this owner about this generation. */
export function whyUnconfirmed(input: RolloutInput, id: string): string {
  const name = hostnameIn(input, id);
  const other = otherOwnerOf(input, id);
  if (other !== undefined) return `${name}, which obeys ${other}, so one of them has to take over`;
  const { fence } = input.reports.get(id) ?? {};
  if (fence?.name === input.name && fence.generation > input.generation)
    return `${name}, which has the later generation ${fence.generation} of a former owner: cancel the update, and apply it once more`;
  return whyUntaken(input, id) ?? `${name}, which has not confirmed its owner`;
}

/** The reason why a node makes no progress: its agent reports that an order waits for the updater. Undefined if no order waits for long. */
export function whyUntaken({ nodes }: RolloutInput, id: string): string | undefined {
  const { hostname, orderUntaken } = nodes.get(id) ?? {};
  if (orderUntaken === undefined) return undefined;
  return `${hostname}, whose updater takes no order: systemctl status kcore-updater.path kcore-updater`;
}

/** Controllers are updated one at a time, each only while all are ready and replicate. A rollback waits neither for readiness nor for replication. */
function whyNotController(input: RolloutInput, id: string, context: StartContext): string | undefined {
  const { rows, isBack } = context;
  for (const other of input.nodes.values()) {
    if (!other.isController || other.id === id) continue;
    const row = rows.get(other.id);
    if (row && (isActive(row) || (!isForced(input, context) && mayBeDownBy(input, other.id, row))))
      return `${other.hostname}, a controller that is, or may be, under way`;
    if (!other.isReady && !isBack) return `${other.hostname}, a controller that is not ready`;
  }
  for (const { hostname, replication } of isBack ? [] : input.nodes.values())
    if (replication !== undefined) return `the replication of ${hostname}: ${replication}`;
  return undefined;
}
