import { randomUUID } from "node:crypto";
import { omitUndefined } from "#base/omit-undefined.ts";
import { commonProtocol } from "./common-protocol.ts";
import type { Found, Records, RegisterChange } from "./records.ts";
import { keys, type ApprovalRecord, type RejectRecord } from "./registers.ts";

/**
 * The rejects of nodes. Each is a register of its own, and an approve deletes those that it has read. So a reject that
 * it has not read, made at the same time on the other side of a cut, stands. This is an observed-remove set (Shapiro et
 * al., INRIA RR-7506, 2011, section 3.3.5), of which the approve is the remove. A node is rejected while any is left.
 */
export type Rejects = ReturnType<typeof watchRejects>;

export type Decision = Pick<ApprovalRecord, "state" | "by" | "reason">;

/** `newName` gives a name that was never used. */
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
  /** The rejects that stand against a node, the newest last. */
  const of = (id: string): readonly Found<RejectRecord>[] =>
    [...(standing.get(id) ?? [])].map((key) => readReject(records, key)).toSorted((a, b) => (a.at < b.at ? -1 : 1));
  /**
   * The changes beside a decision's approval: one more reject, or the deletion of the rejects that are read here now.
   * While some controller does not know the kind, there is no new reject: the approval alone says so.
   */
  const changesOf = (id: string, { state, by, reason }: Decision): RegisterChange[] => {
    if (state !== "rejected")
      return [...(standing.get(id) ?? [])].map((key) => ({ key, value: undefined, isFree: true }));
    if (commonProtocol(records.replica) < 2) return [];
    return [{ key: keys.node(id).reject(newName()), value: { by, ...omitUndefined({ reason }) }, isFree: true }];
  };
  return {
    of,
    changesOf,
    /** The changes that write a decision about a node; none if it stands already. */
    decide(id: string, { state, by, reason }: Decision): RegisterChange[] {
      const key = keys.node(id).approval;
      const approval = records.get("approval", key);
      const present = approval?.value ?? { epoch: 1, state: "pending" };
      // A repeated reject is a new one: its writer has not read an approve made elsewhere.
      if (approval && state !== "rejected" && approvalOf({ approval, rejects: of(id) }) === state) return [];
      // Inside an epoch a reject stands; a second approve has read the reject, and begins the next epoch.
      const epoch = Math.max(1, present.epoch) + (present.state === "rejected" && state === "approved" ? 1 : 0);
      const value = { epoch, state, by, ...omitUndefined({ reason }) };
      return [{ key, value }, ...changesOf(id, value)];
    },
    stop,
  };
}

/** An undecided node waits; one reject that no approve has read stands against every approve. */
export function approvalOf({
  approval,
  rejects,
}: {
  readonly approval?: Found<ApprovalRecord> | undefined;
  readonly rejects: readonly unknown[];
}): ApprovalRecord["state"] {
  return rejects.length > 0 ? "rejected" : (approval?.value.state ?? "pending");
}

/** A reject that stands: its key says so, even if this version cannot read its value. */
export function readReject(records: Records, key: string): Found<RejectRecord> {
  const reason = "its reject is written by a newer version than this controller's";
  const unread = { key, value: { by: "unknown", reason }, dot: "", origin: "", at: "" };
  return records.get("reject", key) ?? unread;
}
