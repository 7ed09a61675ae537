import { lookAtHooks } from "./hooks.ts";
import type { Failure, FailureKind, NodePhase, Report, Row } from "./records.ts";
import { reportOf, type RolloutView } from "./view.ts";

/** A node goes back by itself when its time is over, and then has to say so. */
const graceMs = 60_000;

/** What a row becomes by what is known of its node now; undefined: nothing new. */
export function advance(view: RolloutView, id: string, row: Row): Row | undefined {
  const report = reportOf(view, id);
  const isAnswered = report?.fence.seq === row.seq && report.fence.generation === row.generation;
  switch (row.phase) {
    case "pending":
      return report && fromPending(view, row, report);
    case "preparing":
      if (isAnswered && report.state === "prepared") return to(view, row, "prepared");
      return failedBy(view, row, isAnswered ? report : undefined) ?? late(view, row, "prepareSeconds", "build");
    case "prepared":
      return fromPrepared(view, row, report);
    case "draining": {
      const { next, failed } = lookAtHooks(view, id, row);
      if (failed) return fail(view, row, "drain", failed.message);
      if (next === undefined) return { ...to(view, row, "activating"), drained: true };
      const limit = view.spec.drain.timeoutSeconds * 1000;
      return isOver(view, row, limit) ? fail(view, row, "drain", "it was not drained in time") : undefined;
    }
    case "activating":
    case "rebooting":
      return fromActivating(view, row, isAnswered ? report : undefined);
    case "verifying":
      return fromVerifying(view, id, row, report);
    case "rolling_back":
      if (isAnswered && report.state === "rolled_back") return to(view, row, "rolled_back");
      if (isAnswered && report.state === "failed")
        return fail(view, row, "rollback", report.failure?.message ?? "it could not go back");
      return late(view, row, "activateSeconds", "rollback");
    default:
      return undefined;
  }
}

/** The row's next phase, as an order of its own where the node has something to do. */
export function to(view: RolloutView, row: Row, phase: NodePhase): Row {
  const { epoch, owner } = view.owner;
  return { ...row, epoch, owner, seq: row.seq + 1, phase, since: view.now };
}

export function fail(view: RolloutView, row: Row, kind: FailureKind, message: string): Row {
  const failure: Failure = { kind, message: message.slice(0, 2_000) };
  return { ...to(view, row, "failed"), failure };
}

/**
 * The node knows its owner. What it does already, a former owner of this generation began: that is gone on with, so that nothing is
 * left half done.
 */
function fromPending(view: RolloutView, row: Row, report: Report): Row | undefined {
  if (report.fence.generation !== row.generation) return undefined;
  const from = { ...(row.from ?? report.previous ?? report.present) };
  switch (report.state) {
    case "fenced":
      if (report.present.id !== view.target.id) return undefined;
      return { ...to(view, row, "succeeded"), from, untouched: true };
    case "preparing":
    case "prepared":
      return { ...to(view, row, "preparing"), from };
    case "activating":
    case "rebooting":
    case "activated":
      return { ...to(view, row, "activating"), from };
    default:
      return (
        failedBy(view, { ...row, from }, report) ?? {
          ...fail(view, row, "rollback", "a former owner took it back"),
          from,
        }
      );
  }
}

function fromPrepared(view: RolloutView, row: Row, report: Report | undefined): Row | undefined {
  const { spec, isApproved } = view;
  // What nobody knew before it was built: such a node waits for a person.
  const disrupts = report?.needsReboot === true || spec.drain.enabled;
  if (spec.approvalPolicy === "auto-non-disruptive" && disrupts && !isApproved) return undefined;
  return to(view, row, spec.drain.enabled ? "draining" : "activating");
}

function fromActivating(view: RolloutView, row: Row, report: Report | undefined): Row | undefined {
  if (report?.state === "activated") return to(view, row, "verifying");
  if (report?.state === "rebooting" && row.phase === "activating")
    // The order is the same one: what it does must not be begun again.
    return { ...row, phase: "rebooting", since: view.now };
  const failed = failedBy(view, row, report);
  if (failed) return failed;
  const isReboot = row.phase === "rebooting" || view.spec.activation.rebootPolicy === "always";
  return late(view, row, isReboot ? "rebootSeconds" : "activateSeconds", isReboot ? "reboot" : "unreachable");
}

function fromVerifying(view: RolloutView, id: string, row: Row, report: Report | undefined): Row | undefined {
  if (report?.state === "failed") return failedBy(view, row, report);
  const { next, failed } = lookAtHooks(view, id, row);
  if (failed) return fail(view, row, failed.hook === "undrain" ? "drain" : "gate", `${failed.hook}: ${failed.message}`);
  const missing = missingOf(view, id) ?? (next === undefined ? undefined : `“${next}” was not answered by the bastion`);
  if (missing === undefined) return to(view, row, "succeeded");
  const limit = view.spec.timeouts.verifySeconds * 1000;
  return isOver(view, row, limit) ? fail(view, row, "gate", missing) : undefined;
}

/** What keeps an updated node from being well, by what controllers know of it. */
export function missingOf({ nodes, target }: RolloutView, id: string): string | undefined {
  const node = nodes.get(id);
  if (!node) return "it is no node of this cluster any more";
  if (!node.isApproved) return "it is not approved any more";
  if (!node.isReady) return `it is not ready: ${node.reason ?? "no heartbeat"}`;
  if (target.version !== "" && node.version !== target.version)
    return `it says that it runs ${node.version}, not ${target.version}`;
  return node.replication && `its replication is not healthy: ${node.replication}`;
}

function failedBy(view: RolloutView, row: Row, report: Report | undefined): Row | undefined {
  if (report?.state !== "failed") return undefined;
  const { kind, message } = report.failure ?? { kind: "activation", message: "the node does not say why" };
  return fail(view, row, kind, message);
}

function late(
  view: RolloutView,
  row: Row,
  limit: keyof RolloutView["spec"]["timeouts"],
  kind: FailureKind,
): Row | undefined {
  const seconds = view.spec.timeouts[limit];
  if (!isOver(view, row, seconds * 1000 + graceMs)) return undefined;
  return fail(view, row, kind, `the node did not say within ${seconds} s and a minute what came of it`);
}

function isOver({ now }: RolloutView, { since }: Row, ms: number): boolean {
  return now - since > ms;
}
