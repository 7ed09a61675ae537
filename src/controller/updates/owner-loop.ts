import { describeError, type Log } from "#api/log.ts";
import { defined } from "#optional/defined.ts";
import { decide } from "#rollout/decide.ts";
import type { Decision } from "#rollout/rollout-input.ts";
import { hasEnded, isGoing, type Progress } from "#rollout/records.ts";
import { selectNodes } from "#rollout/selection.ts";
import type { RolloutInput } from "#rollout/rollout-input.ts";
import type { Audit } from "../audit.ts";
import type { Wish } from "../cluster/records.ts";
import { keys } from "../cluster/registers.ts";
import type { Timers } from "../replica/replica-ports.ts";
import { knowNodes, type KnownNode, type NodeSources } from "./rollout-nodes.ts";
import { planHashOf, targetOf, type UpdateIndex, type UpdateRecords } from "./update-records.ts";

export interface OwnerLoopParts extends NodeSources {
  readonly index: UpdateIndex;
  readonly controllerId: string;
  readonly audit: Pick<Audit, "record">;
  readonly log: Log;
  readonly clock: () => number;
  readonly monotonic: () => number;
  readonly timers: Pick<Timers, "after">;
}

/** Carries out the updates that this controller owns: decides, writes, and decides again when the world has changed. */
export interface OwnerLoop {
  /** Something of these updates changed. */
  readonly nudge: (names: Iterable<string>) => void;
  readonly stop: () => Promise<void>;
}

/** Nodes that go and come, timeouts and windows are noticed so often, ms. */
const tickMs = 1_000;
/** What changes in a burst is decided about once, ms. */
const gatherMs = 50;

export function startOwnerLoop(parts: OwnerLoopParts): OwnerLoop {
  const { index, controllerId, log, monotonic, timers } = parts;
  let isStopped = false;
  let next: { readonly cancel: () => void; readonly at: number } | undefined;
  let round: Promise<void> = Promise.resolve();
  /** One that has ended is looked at again when something of it changed: a node may say late what came of it. */
  const changed = new Set<string>();
  const isDue = (update: UpdateRecords): boolean =>
    update.owner.owner === controllerId && (changed.has(update.name) || !isSettled(update));
  const look = async (): Promise<void> => {
    const due = [...index.all()].filter(isDue).map(({ name }) => name);
    changed.clear();
    for (const name of due) {
      try {
        while (!isStopped && (await goOn(parts, name))) continue;
      } catch (error) {
        const why = describeError(error);
        log.warn("an update cannot go on: what comes next could not be written", { update: name, ...why });
        changed.add(name);
      }
    }
    if (!isStopped && [...index.all()].some(isDue)) plan(tickMs);
  };
  /** Never later than was planned before: whoever changes something all the time must not keep it from looking. */
  const plan = (ms: number): void => {
    const at = monotonic() + ms;
    if (next && next.at <= at) return;
    next?.cancel();
    const cancel = timers.after(ms, () => {
      next = undefined;
      round = round.then(look);
    });
    next = { cancel, at };
  };
  plan(tickMs);
  return {
    nudge(names) {
      for (const name of names) changed.add(name);
      if (!isStopped) plan(gatherMs);
    },
    async stop() {
      isStopped = true;
      next?.cancel();
      await round;
    },
  };
}

/** Ended, and nobody wants it taken back, nor does it wait for another update to go back. */
export function isSettled({ progress, head, wishes }: UpdateRecords): boolean {
  const now = progress?.value;
  if (now?.generation !== head.value.generation || now.waits !== undefined) return false;
  if (now.phase === "rolled_back") return true;
  return hasEnded(now.phase) && (wishes.rollback?.generation !== now.generation || wishes.rollback.at === now.undone);
}

/** One decision, written; whether there was one. @throws Refused when it cannot be written */
async function goOn(parts: OwnerLoopParts, name: string): Promise<boolean> {
  const { records, index, clock } = parts;
  const update = index.read(name);
  if (!update) return false;
  const view = viewOf(update, knowNodes(parts), parts, clock());
  const decision = decide(view);
  const wishes = writesOf(update, decision);
  if (wishes.length === 0) return false;
  await records.write(wishes);
  tell(parts, update, view, decision);
  return true;
}

export function viewOf(
  update: UpdateRecords,
  nodes: ReadonlyMap<string, KnownNode>,
  { controllerId, index }: Pick<OwnerLoopParts, "controllerId" | "index">,
  now: number,
): RolloutInput {
  const { name, head, statement, owner, progress, rows, reports, answers, attendance, wishes } = update;
  return {
    name,
    generation: head.value.generation,
    spec: statement.spec,
    target: targetOf(statement),
    self: controllerId,
    owner,
    isApproved: isApproved(update, nodes),
    progress: progress?.value,
    rows,
    reports,
    answers,
    wishes,
    nodes,
    now,
    ...defined({ attendance, other: otherWith(update, nodes, index) }),
  };
}

/** The name of another update that is not over and has one of these nodes, too. */
function otherWith(
  update: UpdateRecords,
  nodes: ReadonlyMap<string, KnownNode>,
  index: UpdateIndex,
): string | undefined {
  const going = [...index.all()].filter((other) => other.name !== update.name && isUnderWay(other));
  if (going.length === 0) return undefined;
  const meant = meantBy(update, nodes);
  return going.find(({ rows }) => meant.some((id) => rows.has(id)))?.name;
}

/** The nodes that it began with, or means as long as it has not. */
function meantBy(
  { head, statement, progress }: UpdateRecords,
  nodes: ReadonlyMap<string, KnownNode>,
): readonly string[] {
  const frozen = progress?.value.generation === head.value.generation ? progress.value.waves.flat() : [];
  return frozen.length > 0 ? frozen : selectNodes(nodes.values(), statement.spec.selector).map(({ id }) => id);
}

export function isUnderWay({ progress }: UpdateRecords): boolean {
  return isGoing(progress?.value.phase);
}

/** An approval holds for the manifest, its generation and the nodes that it means: those that were frozen once it has begun. */
function isApproved(update: UpdateRecords, nodes: ReadonlyMap<string, KnownNode>): boolean {
  const { approved, head } = update;
  return approved?.generation === head.value.generation && approved.hash === presentHash(update, nodes);
}

export function presentHash(update: UpdateRecords, nodes: ReadonlyMap<string, KnownNode>): string {
  const { hash, generation } = update.head.value;
  return planHashOf(hash, generation, meantBy(update, nodes));
}

function writesOf({ name }: UpdateRecords, { progress, rows }: Decision): readonly Wish[] {
  const of = keys.update(name);
  return [
    ...(progress ? [{ key: of.progress, value: progress }] : []),
    ...[...rows].map(([id, value]) => ({ key: of.row(id), value })),
  ];
}

/** Every transition is in the log and in the audit trail. */
function tell(
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

function textsOf({ reason, waits }: Progress) {
  return defined({ reason, waits });
}
