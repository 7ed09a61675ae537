import { nextAssignment } from "./node-transitions.ts";
import type { NodeAssignment, RolloutProgress } from "./records.ts";
import { resumeAfterTakeover } from "./resume-after-takeover.ts";
import { isLeftOut, type Decision, type Rollout, type RolloutInput } from "./rollout-input.ts";
import { startNodes, rollBackNodes, noteWait, whyUnderWay, withStarted } from "./schedule.ts";
import { isStopped, nextPhase } from "./update-transitions.ts";

const nothing: Decision = { rows: new Map() };

/**
 * Decides the next records of a rollout; none unless this controller is the rollout's owner. A pure function, called again when these records
 * are durable and after each other change. Nodes act on rows alone, so every action is durable before a node begins it.
 */
export function decide(input: RolloutInput): Decision {
  const { owner, self, progress, generation } = input;
  if (owner.owner !== self || isBehind(input)) return nothing;
  if (progress?.generation !== generation) return { progress: firstProgress(input), rows: new Map() };
  return withinTransaction(
    resumeAfterTakeover(input, progress) ?? continueRollout({ input, progress, rows: rowsOf(input, progress) }),
  );
}

/** Whether records belong to a newer manifest than the input's: an owner with an old manifest must not overwrite them. */
function isBehind({ generation, progress, rows }: RolloutInput): boolean {
  return (progress?.generation ?? 0) > generation || [...rows.values()].some((row) => row.generation > generation);
}

function firstProgress({ owner: { epoch, owner }, generation, now }: RolloutInput): RolloutProgress {
  return { epoch, owner, generation, phase: "pending", since: now, waves: [], started: [], canaries: 0 };
}

/** The rows of the rollout's nodes, without nodes that left the cluster before the rollout touched them. */
function rowsOf(input: RolloutInput, { waves }: RolloutProgress): ReadonlyMap<string, NodeAssignment> {
  const rows = new Map<string, NodeAssignment>();
  for (const id of waves.flat()) {
    const row = input.rows.get(id);
    if (row?.generation === input.generation && !isLeftOut(input, id, row)) rows.set(id, row);
  }
  return rows;
}

function continueRollout(rollout: Rollout): Decision {
  const { phase } = rollout.progress;
  if (phase === "pending" || phase === "ready") return nextPhase(rollout) ?? nothing;
  return moveNodes(rollout) ?? callOffNodes(rollout) ?? nextPhase(rollout) ?? schedule(rollout);
}

function schedule(rollout: Rollout): Decision {
  const { input, progress, rows } = rollout;
  if (progress.phase === "rolling_out") return startNodes(rollout);
  if (progress.phase === "rolling_back") return rollBackNodes(rollout);
  const inPreflight = [...rows].filter(([, { phase }]) => phase === "preflight");
  return noteWait(
    progress,
    inPreflight.flatMap(([id, row]) => whyUnderWay(input, id, row) ?? []),
  );
}

/** Makes the transitions that reports, hooks and time limits cause. A node that a former owner had begun counts as started. */
function moveNodes({ input, progress, rows }: Rollout): Decision | undefined {
  const moved = new Map<string, NodeAssignment>();
  for (const [id, row] of rows) {
    const next = nextAssignment(input, id, row);
    if (next) moved.set(id, next);
  }
  if (moved.size === 0) return undefined;
  const isUnlisted = (id: string, row: NodeAssignment): boolean =>
    row.phase !== "pending" && row.untouched !== true && !progress.started.includes(id);
  const unlisted = [...moved].filter(([id, row]) => isUnlisted(id, row)).map(([id]) => id);
  return unlisted.length === 0 ? { rows: moved } : { progress: withStarted(progress, unlisted), rows: moved };
}

/** Once a rollout stops, calls off each node that has not reached its activation, and each silent node after a takeover. */
function callOffNodes(rollout: Rollout): Decision | undefined {
  const { input, progress, rows } = rollout;
  if (progress.phase === "succeeded" || (progress.phase === "rolling_out" && !isStopped(rollout))) return undefined;
  const calledOff = new Map<string, NodeAssignment>();
  for (const [id, row] of rows) {
    const next = nextAssignment(input, id, row, "call off");
    if (next) calledOff.set(id, next);
  }
  return calledOff.size > 0 ? { rows: calledOff } : undefined;
}

/** The limits of one decision, below those of a transaction (controller/replica/writer.ts); each row may carry a long failure. */
const decisionLimits = { rows: 400, bytes: 384 * 1024 } as const;

/**
 * Cuts a decision to the rows that fit into one transaction; the next decision has the others. A chosen node that is cut off gets its first row
 * in preflight, as after a takeover.
 */
function withinTransaction({ rows, ...decision }: Decision): Decision {
  const fitting = new Map<string, NodeAssignment>();
  let bytes = 0;
  for (const [id, row] of rows) {
    bytes += Buffer.byteLength(JSON.stringify(row));
    if (fitting.size === decisionLimits.rows || bytes > decisionLimits.bytes) break;
    fitting.set(id, row);
  }
  return { ...decision, rows: fitting };
}
