import type { Attendance, HookAnswer, Row } from "./records.ts";
import { mayRunTarget } from "./starts.ts";
import { hookKey, isAtRest, nameOf, reportOf, type RolloutView } from "./view.ts";
import { illnessOf, missingOf } from "./well.ts";

type Hook = { readonly state?: string | undefined; readonly command?: string | undefined };

/** Whether the bastion has to do something: it names a state or a command. */
export function isHook(hook: Hook | undefined): boolean {
  return hook?.state !== undefined || hook?.command !== undefined;
}

interface Due {
  readonly name: string;
  /** So long may the bastion take. */
  readonly seconds: number;
}

/** What the bastion does for a node in this phase, one after the other: `drain`, `gate NAME`, `undrain`. */
function hooksOf(view: RolloutView, id: string, row: Row): readonly Due[] {
  const { drain, healthGates } = view.spec;
  const seconds = drain.timeoutSeconds;
  const undrain = row.drained === true && isHook(drain.after) ? [{ name: "undrain", seconds }] : [];
  switch (row.phase) {
    case "draining":
      return isHook(drain) ? [{ name: "drain", seconds }] : [];
    case "verifying": {
      const gates = healthGates.filter(isHook);
      return [
        ...gates.map(({ name, withinSeconds }) => ({ name: `gate ${name}`, seconds: withinSeconds })),
        ...undrain,
      ];
    }
    case "failed":
      // It went back by itself. To one that may run what failed, or may yet come to, no work returns.
      return mayRunTarget(view, id, row) || isStuck(view, id, row) ? [] : undrain;
    case "cancelled":
      return row.unproven === true && mayRunTarget(view, id, row) ? [] : undrain;
    case "rolled_back":
      return undrain;
    default:
      return [];
  }
}

/** A node that failed and could not go back, or has not done so yet, whatever it runs. */
export function isStuck(view: RolloutView, id: string, row: Row): boolean {
  const report = reportOf(view, id);
  const failures = [row.failure, report?.failure];
  return report?.state === "rolling_back" || failures.some((each) => each?.kind === "rollback" || each?.stuck === true);
}

/** How far the hooks of a row are; empty: there is none that is still to be done. */
export interface Hooks {
  /** What the bastion shall do now. */
  readonly next?: string;
  /** What it shall do when the node is well: work never returns to one that is not. */
  readonly held?: string;
  /** What came of one that failed; at rest it is asked for again all the same. */
  readonly failed?: { readonly hook: string; readonly message: string };
}

export function lookAtHooks(view: RolloutView, id: string, row: Row): Hooks {
  for (const { name } of hooksOf(view, id, row)) {
    const answer = answerOf(view, id, row, name);
    if (answer?.ok === true) continue;
    const failed = answer && { failed: { hook: name, message: answer.message ?? "it failed" } };
    // Nothing goes on behind a node at rest: what lets its work come back may be tried again.
    if (failed && !isAtRest(row)) return failed;
    return { ...(isHeld(view, id, row) ? { held: name } : { next: name }), ...failed };
  }
  return {};
}

function isHeld(view: RolloutView, id: string, row: Row): boolean {
  if (isAtRest(row)) return illnessOf(view, id) !== undefined;
  return row.phase === "verifying" && (row.asked !== true || missingOf(view, id) !== undefined);
}

/** The hook whose answer counts: one that is being done stays it, though its node is not well for a moment. */
export function answerable(view: RolloutView, id: string, row: Row): string | undefined {
  const { next, held } = lookAtHooks(view, id, row);
  return next ?? (row.asked === true || isAtRest(row) ? held : undefined);
}

/**
 * The nodes at rest whose work comes back when they are well: a rollout does not end before, so that whoever attends to it is still there.
 * One that does not become well in the time for that is waited for no longer.
 */
export function whyNotWell(view: RolloutView, rows: ReadonlyMap<string, Row>): readonly string[] {
  const limit = view.spec.timeouts.verifySeconds * 1000;
  const isAwaited = (id: string, row: Row): boolean =>
    isAtRest(row) &&
    view.now - row.since <= limit &&
    view.nodes.get(id)?.isApproved === true &&
    isHeldAtFirst(view, id, row);
  const awaited = [...rows].filter(([id, row]) => isAwaited(id, row));
  return awaited.map(([id]) => `${nameOf(view, id)}, which ${illnessOf(view, id)}, before work comes back to it`);
}

function isHeldAtFirst(view: RolloutView, id: string, row: Row): boolean {
  const { held, failed } = lookAtHooks(view, id, row);
  return held !== undefined && failed === undefined;
}

/** The wait for a bastion that carries out a hook of a node; undefined: no hook of it is due. */
export function whyAsked(view: RolloutView, id: string, row: Row): string | undefined {
  const { next } = lookAtHooks(view, id, row);
  return next && `the bastion: ${next} of ${nameOf(view, id)} (${attendedBy(view)})`;
}

/** The process that attends to an update, as far as the cluster was told, and the command that begins one. */
export function attendedBy({ name, attendance }: Pick<RolloutView, "name" | "attendance">): string {
  const command = `kcore update cluster attend ${name}`;
  if (!attendance) return `unattended: ${command}`;
  return `attended by ${attendantOf(attendance)}, unless that process has ended: ${command}`;
}

export function attendantOf({ by, host, at }: Attendance): string {
  return `${by} on ${host} since ${at}`;
}

/** How long the bastion may take for the hooks of a row up to the one that is still to be done. */
export function hookSeconds(view: RolloutView, id: string, row: Row): number {
  const hooks = hooksOf(view, id, row);
  const open = hooks.findIndex(({ name }) => answerOf(view, id, row, name) === undefined);
  const begun = open < 0 ? hooks : hooks.slice(0, open + 1);
  return begun.reduce((sum, { seconds }) => sum + seconds, 0);
}

function answerOf({ answers }: RolloutView, id: string, row: Row, name: string): HookAnswer | undefined {
  const answer = answers.get(hookKey(id, name));
  return answer && isFor(answer, row) ? answer : undefined;
}

function isFor({ generation, seq, epoch, owner }: HookAnswer, row: Row): boolean {
  return generation === row.generation && seq === row.seq && epoch === row.epoch && owner === row.owner;
}

/** A node at rest whose work came back; undefined: there is nothing new. */
export function undrained(view: RolloutView, id: string, row: Row): Row | undefined {
  const isAnswered = hooksOf(view, id, row).length > 0 && Object.keys(lookAtHooks(view, id, row)).length === 0;
  return isAnswered ? withoutDrain(row) : undefined;
}

/** Whether a node at rest was drained and has not got its work back. Of one that succeeded, the version before kept that it was drained. */
export function isDrained(view: RolloutView, id: string, row: Row): boolean {
  const isOver = row.phase === "succeeded" || answerOf(view, id, row, "undrain")?.ok === true;
  return row.drained === true && !isOver;
}

/** A node that has its work, and is known to be as its row says. */
export function withoutDrain(row: Row): Row {
  const { drained: _, unproven: __, ...rest } = row;
  return rest;
}
