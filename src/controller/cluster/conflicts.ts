import type { ConflictList, ConflictView } from "#api/schemas.ts";
import type { z } from "zod";
import { decodeStamp } from "#crdt/hlc.ts";
import { Refused } from "./refused.ts";
import type { ConflictRecord, ConflictSide } from "../replica/conflict-record.ts";
import { encodeDot } from "./dots.ts";
import type { NodeNames } from "./node-names.ts";
import type { Records } from "./records.ts";
import type { Rejects } from "./rejects.ts";
import { isSecret, keys, mergeKindOf, type ApprovalRecord } from "./registers.ts";

/** A conflict as it is shown. */
export function viewConflict({ id, key, winner, loser }: ConflictRecord): ConflictView {
  const [won, lost] = [sideOf(winner), sideOf(loser)];
  return { id, key, at: won.at > lost.at ? won.at : lost.at, winner: won, loser: lost };
}

function sideOf(side: ConflictSide): ConflictView["winner"] {
  const value = side.text === null ? null : (JSON.parse(side.text) as unknown);
  return { value, dot: encodeDot(side), origin: side.o, at: new Date(decodeStamp(side.hlc).ms).toISOString() };
}

export function listConflicts(records: Records, names: NodeNames): z.input<typeof ConflictList> {
  return {
    conflicts: records.replica.conflicts().map(viewConflict),
    names: [...names.shared().values()].map((nodes) => {
      const keptBy = nodes[0] ?? "";
      return { hostname: names.of(keptBy), nodes: [...nodes], keptBy };
    }),
  };
}

/** Closes a conflict: what won stands. @throws Refused CONFLICT_UNKNOWN */
export async function ackConflict(records: Records, id: string): Promise<{ result: "deleted"; dot: string }> {
  const { id: found } = findConflict(records, id);
  return { result: "deleted", dot: await records.write([{ key: keys.conflict(found), value: undefined }]) };
}

/** Writes what lost, and closes the conflict. @throws Refused CONFLICT_UNKNOWN; 409 where the winner may never be undone so */
export async function takeLoser(
  { records, rejects }: { readonly records: Records; readonly rejects: Rejects },
  id: string,
  by: string,
): Promise<{ result: "updated"; dot: string }> {
  const { id: found, key, loser } = findConflict(records, id);
  if (isSecret(key)) {
    const hint = `write the one that is right, then: kcore conflict ack ${id}`;
    throw new Refused(409, "CONFLICT_FINAL", `${key} is secret: the conflict does not hold what lost`, hint);
  }
  const kind = mergeKindOf(key);
  if (kind === "first" || kind === "remove-wins" || kind === "epoch") {
    throw new Refused(409, "CONFLICT_FINAL", `${key} is written once: what won stands`, `kcore conflict ack ${id}`);
  }
  const lost = loser.text === null ? undefined : (JSON.parse(loser.text) as unknown);
  const decided = kind === "approval" ? approveAnew(records, key, lost, by) : undefined;
  const dot = await records.write([
    { key, value: decided ?? lost },
    ...(decided ? rejects.wishesOf(key.split("/")[1] ?? "", decided) : []),
    { key: keys.conflict(found), value: undefined },
  ]);
  return { result: "updated", dot };
}

/** Inside its epoch the winner of an approval would win again, so the loser's word needs the next epoch. */
function approveAnew(records: Records, key: string, lost: unknown, by: string): ApprovalRecord {
  const epoch = (records.value("approval", key)?.epoch ?? 0) + 1;
  return { ...(lost as ApprovalRecord), epoch, by };
}

/** By its id, or by a beginning of it that only one has. */
function findConflict(records: Records, id: string): ConflictRecord {
  const open = records.replica.conflicts();
  const found = open.filter((conflict) => conflict.id === id || (id.length >= 4 && conflict.id.startsWith(id)));
  const [first] = found;
  if (first && found.length === 1) return first;
  throw new Refused(404, "CONFLICT_UNKNOWN", `there is no open conflict ${id}`, "kcore get conflicts");
}
