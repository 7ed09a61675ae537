import { randomUUID } from "node:crypto";
import { omitUndefined } from "#base/omit-undefined.ts";
import type { ParsedRegister, Records, RegisterChange } from "./records.ts";
import { keys, type ApprovalRecord, type RejectRecord } from "./registers.ts";

/**
 * The rejects of nodes. Each is a register of its own, and an approve deletes those that it has read. So a concurrent
 * reject, made on the other side of a network cut, stays. This is an observed-remove set (Shapiro et al., INRIA RR-7506, 2011,
 * section 3.3.5) whose remove is the approve. A node is rejected while any reject is left.
 */
export type Rejects = ReturnType<typeof watchRejects>;

export type ApprovalDecision = Pick<ApprovalRecord, "state" | "by" | "reason">;

/** `newName` returns a name that was never used. */
export function watchRejects(records: Records, newName: () => string = randomUUID) {
  const standing = new Map<string, Set<string>>();
  const note = (key: string): void => {
    const id = /^node\/([^/]+)\/reject\//.exec(key)?.[1];
    if (id === undefined) return;
    const known = standing.get(id) ?? new Set();
    if (records.replica.stands(key)) known.add(key);
    else known.delete(key);
    if (known.size === 0) standing.delete(id);
    else standing.set(id, known);
  };
  for (const [key] of records.replica.entries("node/")) note(key);
  for (const key of records.replica.unreadable("node/")) note(key);
  const stop = records.replica.watch((changed) => {
    for (const key of changed) note(key);
  });
  /** The rejects of a node that no approve has deleted, the newest last. */
  const of = (id: string): readonly ParsedRegister<RejectRecord>[] =>
    [...(standing.get(id) ?? [])].map((key) => readReject(records, key)).toSorted((a, b) => (a.at < b.at ? -1 : 1));
  /** The changes beside a decision's approval: a new reject, or the deletion of all rejects that this controller has read. */
  const changesOf = (id: string, { state, by, reason }: ApprovalDecision): RegisterChange[] => {
    if (state !== "rejected") return [...(standing.get(id) ?? [])].map((key) => ({ key, value: undefined }));
    return [{ key: keys.node(id).reject(newName()), value: { by, ...omitUndefined({ reason }) } }];
  };
  return {
    of,
    changesOf,
    /** The changes that write a decision about a node; none if it is in force already and no reject. */
    decide(id: string, { state, by, reason }: ApprovalDecision): RegisterChange[] {
      const key = keys.node(id).approval;
      const approval = records.get("approval", key);
      const present = approval?.value ?? { epoch: 1, state: "pending" };
      // A repeated reject is a new one: its writer has not read an approve made elsewhere.
      if (approval && state !== "rejected" && approvalOf({ approval, rejects: of(id) }) === state) return [];
      // Within an epoch a reject wins; an approve that has read the reject begins the next epoch.
      const epoch = Math.max(1, present.epoch) + (present.state === "rejected" && state === "approved" ? 1 : 0);
      const value = { epoch, state, by, ...omitUndefined({ reason }) };
      return [{ key, value }, ...changesOf(id, value)];
    },
    stop,
  };
}

/** A node's approval: rejected while any reject is left, pending while undecided. */
export function approvalOf({
  approval,
  rejects,
}: {
  readonly approval?: ParsedRegister<ApprovalRecord> | undefined;
  readonly rejects: readonly unknown[];
}): ApprovalRecord["state"] {
  return rejects.length > 0 ? "rejected" : (approval?.value.state ?? "pending");
}

/** Reads a reject. A reject counts by its key alone, even if this version cannot read its value. */
export function readReject(records: Records, key: string): ParsedRegister<RejectRecord> {
  const reason = "its reject is written by a newer version than this controller's";
  const unread = { key, value: { by: "unknown", reason }, dot: "", origin: "", at: "" };
  return records.get("reject", key) ?? unread;
}
