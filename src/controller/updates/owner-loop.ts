import { describeError, type Log } from "#api/log.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { decide } from "#rollout/decide.ts";
import type { RolloutProgress } from "#rollout/records.ts";
import type { Decision, RolloutInput } from "#rollout/rollout-input.ts";
import type { Audit } from "../audit.ts";
import type { RegisterChange } from "../cluster/records.ts";
import { keys } from "../cluster/registers.ts";
import type { ReplicaTimers } from "../replica/replica-ports.ts";
import { inputOf, type InputSources } from "./known-input.ts";
import { isSettled, type UpdateRecords } from "./update-records.ts";

export interface OwnerLoopParts extends InputSources {
  readonly audit: Pick<Audit, "record">;
  readonly log: Log;
  readonly monotonic: () => number;
  readonly timers: Pick<ReplicaTimers, "after">;
}

/** The interval of decisions about nodes' readiness, timeouts and windows, which no change of a register announces. */
const tickMs = 1_000;
/** The time within which changes are gathered for one decision. */
const gatherMs = 50;

/** Carries out the updates that this controller owns: decides and writes, again and again while something changes. */
export function startOwnerLoop(parts: OwnerLoopParts) {
  const { index, controllerId, log, monotonic, timers } = parts;
  let isStopped = false;
  let next: { readonly cancel: () => void; readonly at: number } | undefined;
  let round: Promise<void> = Promise.resolve();
  /** The names of changed updates. An ended update is decided again, too, since a node may report late. */
  const changed = new Set<string>();
  const isDue = (update: UpdateRecords): boolean =>
    update.owner.owner === controllerId && (changed.has(update.name) || !isSettled(update));
  const decideAll = async (): Promise<void> => {
    const due = [...index.all()].filter(isDue).map(({ name }) => name);
    changed.clear();
    for (const name of due) {
      try {
        while (!isStopped && (await decideOne(parts, name))) continue;
      } catch (error) {
        const why = describeError(error);
        log.warn("an update cannot go on: its next step could not be written", { update: name, ...why });
        changed.add(name);
      }
    }
    if (!isStopped && [...index.all()].some(isDue)) plan(tickMs);
  };
  /** Schedules a round, never later than one that is scheduled: a stream of changes must not delay it. */
  const plan = (ms: number): void => {
    const at = monotonic() + ms;
    if (next && next.at <= at) return;
    next?.cancel();
    const cancel = timers.after(ms, () => {
      next = undefined;
      round = round.then(decideAll);
    });
    next = { cancel, at };
  };
  plan(tickMs);
  return {
    /** Called when registers of these updates changed. */
    nudge(names: Iterable<string>): void {
      for (const name of names) changed.add(name);
      if (!isStopped) plan(gatherMs);
    },
    async stop(): Promise<void> {
      isStopped = true;
      next?.cancel();
      await round;
    },
  };
}

/** Writes the next decision; false if there is none. @throws Refused when it cannot be written */
async function decideOne(parts: OwnerLoopParts, name: string): Promise<boolean> {
  const { records, index } = parts;
  const update = index.read(name);
  if (!update) return false;
  const input = inputOf(parts, update);
  const decision = decide(input);
  const writes = writesOf(update, decision);
  if (writes.length === 0) return false;
  await records.write(writes);
  logTransitions(parts, update, input, decision);
  return true;
}

function writesOf({ name }: UpdateRecords, { progress, rows }: Decision): readonly RegisterChange[] {
  const of = keys.update(name);
  return [
    ...(progress ? [{ key: of.progress, value: progress }] : []),
    ...[...rows].map(([id, value]) => ({ key: of.row(id), value })),
  ];
}

/** Writes the transitions of a decision into the log and the audit trail. */
function logTransitions(
  { audit, log, controllerId }: OwnerLoopParts,
  update: UpdateRecords,
  { nodes }: RolloutInput,
  { progress, rows }: Decision,
): void {
  const { name, head, owner } = update;
  const common = {
    method: "update",
    by: `controller ${controllerId}`,
    target: name,
    generation: head.value.generation,
    epoch: owner.epoch,
  };
  const former = update.progress?.value;
  const isOtherPhase = progress?.phase !== former?.phase;
  if (progress && (isOtherPhase || progress.waits !== former?.waits))
    log.info("an update goes on", { update: name, phase: progress.phase, ...textsOf(progress) });
  if (progress && isOtherPhase) audit.record({ ...common, outcome: progress.phase, ...textsOf(progress) });
  for (const [id, row] of rows) {
    if (row.phase === update.rows.get(id)?.phase) continue;
    const node = nodes.get(id)?.hostname ?? id;
    const failure = row.failure ? { failure: row.failure.kind, reason: row.failure.message } : {};
    log.info("a node of an update", { update: name, node, phase: row.phase, ...failure });
    audit.record({ ...common, node: id, from: update.rows.get(id)?.phase ?? "", outcome: row.phase, ...failure });
  }
}

function textsOf({ reason, waits }: RolloutProgress) {
  return omitUndefined({ reason, waits });
}
