import { hookSeconds, lookAtHooks, undrained, withoutDrain } from "./hooks.ts";
import type { Failure, FailureKind, NodePhase, Report, Row } from "./records.ts";
import { isOnTarget } from "./spec.ts";
import { whyUntaken } from "./starts.ts";
import { isBack, isGoingBack, otherOwnerOf, reportOf, type RolloutView } from "./view.ts";
import { missingOf } from "./well.ts";

/** Whoever does something until its time is over then has to say so. */
const graceMs = 60_000;

/** What a row becomes by what is known of its node now; undefined: nothing new. */
export function advance(view: RolloutView, id: string, row: Row): Row | undefined {
  const report = reportOf(view, id);
  const answer = report?.fence.seq === row.seq ? report : undefined;
  switch (row.phase) {
    case "preparing":
      if (answer?.state === "prepared") return to(view, row, "prepared");
      return failedBy(view, row, answer) ?? late(view, id, row, "prepareSeconds", "build");
    case "prepared":
      // What comes next takes the node down: that is a start (decide.ts).
      return failedBy(view, row, report);
    case "draining":
      return fromDraining(view, id, row);
    case "activating":
    case "rebooting":
      return fromActivating(view, id, row, answer);
    case "verifying":
      return fromVerifying(view, id, row, report);
    case "rolling_back":
      if (answer?.state === "rolled_back") return to(view, row, "rolled_back");
      if (answer?.state === "failed")
        return fail(view, row, "rollback", answer.failure?.message ?? "it could not go back");
      return late(view, id, row, backLimit(view, report), "rollback");
    default:
      return (report && follow(view, row, report)) ?? strayed(view, id, row) ?? undrained(view, id, row);
  }
}

/** The row's next phase, as an order of its own where the node has something to do. */
export function to(view: RolloutView, row: Row, phase: NodePhase): Row {
  const { epoch, owner } = view.owner;
  const { asked: _, ...rest } = row;
  return { ...rest, epoch, owner, seq: row.seq + 1, phase, since: view.now };
}

export function fail(view: RolloutView, row: Row, kind: FailureKind, message: string): Row {
  return failWith(view, row, { kind, message });
}

function failWith(view: RolloutView, row: Row, failure: Failure): Row {
  return { ...to(view, row, "failed"), failure: { ...failure, message: failure.message.slice(0, 2_000) } };
}

/**
 * A node at rest, as far as this owner knows. What it says otherwise a former owner began: that is gone on with, so that nothing is left
 * half done.
 */
function follow(view: RolloutView, row: Row, report: Report): Row | undefined {
  const { phase } = row;
  const isNew = phase === "preflight" || phase === "pending";
  const from = row.from ?? report.previous ?? report.present;
  // Whoever took it down drained it before.
  const drained = view.spec.drain.enabled ? { drained: true } : {};
  switch (report.state) {
    case "activating":
    case "rebooting":
    case "activated":
      if (!isNew && phase !== "cancelled") return undefined;
      return { ...to(view, row, "activating"), from, ...drained };
    case "rolling_back":
      return isNew || phase === "cancelled" || phase === "succeeded"
        ? { ...to(view, row, "rolling_back"), from, ...(isNew ? drained : {}) }
        : undefined;
    case "rolled_back":
      return phase === "rolled_back" ? undefined : { ...to(view, row, "rolled_back"), from, ...(isNew ? drained : {}) };
    case "failed":
      return isNew || phase === "succeeded"
        ? failedBy(view, { ...row, from, ...(isNew ? drained : {}) }, report)
        : undefined;
    default:
      if (!isNew) return undefined;
      if (report.state === "fenced" && isOnTarget(view.spec, view.target.id, report.present))
        return isInDoubt(view, row)
          ? { ...to(view, row, "verifying"), from }
          : { ...to(view, row, "succeeded"), from, untouched: true };
      if (phase !== "preflight") return undefined;
      // A former owner drains what is prepared, without that being known here.
      return to(view, { ...row, ...(report.state === "prepared" ? drained : {}) }, "pending");
  }
}

/**
 * Another owner of this epoch, or a later one, has brought the node elsewhere than this one believes: it is anywhere until it is asked again,
 * which takes a takeover.
 */
function strayed(view: RolloutView, id: string, row: Row): Row | undefined {
  const report = view.reports.get(id);
  if (otherOwnerOf(view, id) === undefined || report?.fence.generation !== row.generation) return undefined;
  const { state, present } = report;
  const isElsewhere = isBack(row)
    ? present.id === view.target.id
    : row.phase === "succeeded" && state === "rolled_back";
  return isElsewhere ? to(view, row, "preflight") : undefined;
}

/** It has the target, and by what an earlier generation left it may not be well, or be without its work. What is to go is not looked at. */
function isInDoubt(view: RolloutView, { drained, unproven }: Row): boolean {
  return (drained === true || unproven === true) && !isGoingBack(view);
}

function fromDraining(view: RolloutView, id: string, row: Row): Row | undefined {
  const { next, failed } = lookAtHooks(view, id, row);
  const drained = { ...row, drained: true };
  // What was drained in part has to get its work back, too.
  if (failed) return fail(view, drained, "drain", failed.message);
  if (next === undefined) return to(view, drained, "activating");
  const limit = view.spec.drain.timeoutSeconds * 1000;
  return isOver(view, row, limit) ? fail(view, drained, "drain", "it was not drained in time") : undefined;
}

function fromActivating(view: RolloutView, id: string, row: Row, answer: Report | undefined): Row | undefined {
  if (answer?.state === "activated") return to(view, row, "verifying");
  if (answer?.state === "rebooting" && row.phase === "activating")
    // The order is the same one: what it does must not be begun again.
    return { ...row, phase: "rebooting", since: view.now };
  const failed = failedBy(view, row, answer);
  if (failed) return failed;
  const isReboot = row.phase === "rebooting" || view.spec.activation.rebootPolicy === "always";
  return late(view, id, row, isReboot ? "rebootSeconds" : "activateSeconds", isReboot ? "reboot" : "unreachable");
}

function fromVerifying(view: RolloutView, id: string, row: Row, report: Report | undefined): Row | undefined {
  const failure = failedBy(view, row, report);
  if (failure) return failure;
  const { next, held, failed } = lookAtHooks(view, id, row);
  if (failed) return fail(view, row, kindOf(failed.hook), `${failed.hook}: ${failed.message}`);
  const missing = missingOf(view, id);
  if (missing === undefined && next === undefined)
    // Now that it is well the bastion is asked, and has its own time for each hook.
    return held === undefined ? to(view, withoutDrain(row), "succeeded") : { ...row, asked: true };
  const { verifySeconds } = view.spec.timeouts;
  const limit = verifySeconds * 1000 + (row.asked === true ? hookSeconds(view, id, row) * 1000 + graceMs : 0);
  if (!isOver(view, row, limit)) return undefined;
  if (missing !== undefined) return fail(view, row, "gate", missing);
  return fail(view, row, kindOf(next), `“${next}” was not answered by the bastion`);
}

function kindOf(hook: string | undefined): FailureKind {
  return hook === "undrain" ? "drain" : "gate";
}

function failedBy(view: RolloutView, row: Row, report: Report | undefined): Row | undefined {
  if (report?.state !== "failed") return undefined;
  return failWith(view, row, report.failure ?? { kind: "activation", message: "the node does not say why" });
}

/** A node that boots for the target may boot to go back. */
function backLimit({ spec }: RolloutView, report: Report | undefined): keyof RolloutView["spec"]["timeouts"] {
  const { activateSeconds, rebootSeconds } = spec.timeouts;
  return report?.needsReboot === true && rebootSeconds > activateSeconds ? "rebootSeconds" : "activateSeconds";
}

function late(
  view: RolloutView,
  id: string,
  row: Row,
  limit: keyof RolloutView["spec"]["timeouts"],
  kind: FailureKind,
): Row | undefined {
  if (!isLate(view, row, limit)) return undefined;
  const seconds = view.spec.timeouts[limit];
  const untaken = whyUntaken(view, id);
  const why = untaken === undefined ? "" : `: ${untaken}`;
  return fail(view, row, kind, `the node did not say within ${seconds} s and a minute what came of it${why}`);
}

/** Its time is over, and a minute to say so besides. */
export function isLate(view: RolloutView, row: Row, limit: keyof RolloutView["spec"]["timeouts"]): boolean {
  return isOver(view, row, view.spec.timeouts[limit] * 1000 + graceMs);
}

function isOver({ now }: RolloutView, { since }: Row, ms: number): boolean {
  return now - since > ms;
}
