import type { ConflictList, ConflictView } from "#api/schemas.ts";
import type { z } from "zod";
import { decodeStamp } from "#crdt/hlc.ts";
import { Refused } from "./refused.ts";
import { closingKeys, type ConflictRecord, type ConflictSide } from "../replica/conflict-record.ts";
import { encodeDot } from "./dots.ts";
import type { NodeNames } from "./node-names.ts";
import type { Records, RegisterChange } from "./records.ts";
import type { Rejects } from "./rejects.ts";
import { isKnown, isSecretKey, mergeKindOf, type ApprovalRecord } from "./registers.ts";

interface ConflictParts {
  readonly records: Records;
  readonly rejects: Rejects;
}

/** A conflict as kcore shows it; its winner is the value in force. */
export function viewConflict(conflict: ConflictRecord, rejects: Pick<Rejects, "of">): ConflictView {
  const { id, key, winner, loser, others } = asInForce(conflict, rejects);
  const [won, lost] = [sideOf(winner), sideOf(loser)];
  return {
    id,
    key,
    at: won.at > lost.at ? won.at : lost.at,
    winner: won,
    loser: lost,
    ...(others ? { others: others.map(sideOf) } : {}),
  };
}

/**
 * The conflict whose winner is the value in force: while a node is rejected (rejects.ts), a reject is the winner, even if an approve
 * won in the approval's register.
 */
function asInForce(conflict: ConflictRecord, rejects: Pick<Rejects, "of">): ConflictRecord {
  const { key, winner, loser, others = [] } = conflict;
  const isRejected = mergeKindOf(key) === "approval" && rejects.of(key.split("/")[1] ?? "").length > 0;
  const isReject = ({ text }: ConflictSide): boolean =>
    (valueOf(text) as Partial<ApprovalRecord>)?.state === "rejected";
  const standing = isRejected && !isReject(winner) ? [loser, ...others].find(isReject) : undefined;
  if (!standing) return conflict;
  const [lost = winner, ...more] = [winner, loser, ...others].filter((side) => side !== standing);
  const { others: _, ...rest } = conflict;
  return { ...rest, winner: standing, loser: lost, ...(more.length > 0 ? { others: more } : {}) };
}

function sideOf(side: ConflictSide): ConflictView["winner"] {
  const at = new Date(decodeStamp(side.hlc).ms).toISOString();
  return { value: valueOf(side.text), dot: encodeDot(side), origin: side.o, at };
}

/** A side's value, unchecked: a newer version may have written it, or it may be no JSON. */
function valueOf(text: string | null): unknown {
  try {
    return text === null ? null : (JSON.parse(text) as unknown);
  } catch {
    return "(unreadable)";
  }
}

/** The open conflicts, and the host names that several nodes share. */
export function listConflicts({ records, rejects }: ConflictParts, names: NodeNames): z.input<typeof ConflictList> {
  return {
    conflicts: records.replica.conflicts().map((conflict) => viewConflict(conflict, rejects)),
    names: [...names.shared().values()].map((nodes) => {
      const keptBy = nodes[0] ?? "";
      return { hostname: names.of(keptBy), nodes: [...nodes], keptBy };
    }),
  };
}

/** Closes a conflict and keeps the winner. @throws Refused CONFLICT_UNKNOWN */
export async function ackConflict(records: Records, id: string): Promise<{ result: "deleted"; dot: string }> {
  return { result: "deleted", dot: await records.write(changesToClose(findConflict(records, id))) };
}

/**
 * The changes that delete the register of each loss's id (`lossId`), which acknowledges the loss on every controller. The key itself is
 * not written, or an acknowledgement could win over a concurrent change elsewhere.
 */
function changesToClose(conflict: ConflictRecord): RegisterChange[] {
  return closingKeys(conflict).map((key) => ({ key, value: undefined }));
}

/**
 * Writes the losing value, and closes the conflict. @throws Refused CONFLICT_UNKNOWN; CONFLICT_FINAL if the value is secret,
 * unreadable, or of a kind whose winner is final
 */
export async function takeLoser(
  { records, rejects }: ConflictParts,
  id: string,
  by: string,
): Promise<{ result: "updated"; dot: string }> {
  const conflict = findConflict(records, id);
  const { key, loser } = asInForce(conflict, rejects);
  if (isSecretKey(key)) {
    const hint = `write the right value, then: kcore conflict ack ${id}`;
    throw new Refused(409, "CONFLICT_FINAL", `${key} is secret: the losing value is not given out`, hint);
  }
  const kind = mergeKindOf(key);
  if (kind !== "lww" && kind !== "approval") {
    throw new Refused(409, "CONFLICT_FINAL", `${key}: the winning value stands`, `kcore conflict ack ${id}`);
  }
  if (loser.text === null ? kind === "approval" : !isKnown(key, loser.text)) {
    const hint = `kcore conflict ack ${id}, or take it with the version that wrote it`;
    throw new Refused(
      409,
      "CONFLICT_FINAL",
      `the losing value of ${key} is in a form that this version cannot write`,
      hint,
    );
  }
  const lost = loser.text === null ? undefined : valueOf(loser.text);
  const decision = kind === "approval" ? inNextEpoch(records, key, lost, by) : undefined;
  const dot = await records.write([
    { key, value: decision ?? lost },
    ...(decision ? rejects.changesOf(key.split("/")[1] ?? "", decision) : []),
    ...changesToClose(conflict),
  ]);
  return { result: "updated", dot };
}

/** The losing decision in the next epoch: in the present one the winner of an approval would win again. */
function inNextEpoch(records: Records, key: string, lost: unknown, by: string): ApprovalRecord {
  const epoch = (records.value("approval", key)?.epoch ?? 0) + 1;
  return { ...(lost as ApprovalRecord), epoch, by };
}

/** Finds a conflict by its id, or by an unambiguous beginning of at least 4 characters. @throws Refused CONFLICT_UNKNOWN */
function findConflict(records: Records, id: string): ConflictRecord {
  const open = records.replica.conflicts();
  const found = open.filter((conflict) => conflict.id === id || (id.length >= 4 && conflict.id.startsWith(id)));
  const [first] = found;
  if (first && found.length === 1) return first;
  throw new Refused(404, "CONFLICT_UNKNOWN", `there is no open conflict ${id}`, "kcore get conflicts");
}
