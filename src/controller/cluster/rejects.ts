import { randomUUID } from "node:crypto";
import { defined } from "#optional/defined.ts";
import { commonProtocol } from "./common-protocol.ts";
import type { Found, Records, Wish } from "./records.ts";
import { keys, type ApprovalRecord, type RejectRecord } from "./registers.ts";

/**
 * The rejects of nodes. Each is a register of its own, and who approves a node deletes those that it has read: so a reject that it
 * has not read, made at the same time on the other side of a cut, stands (an observed-remove set: Shapiro et al., INRIA RR-7506, 2011,
 * section 3.3.5, of which the approve is the remove). A node is rejected while any is left.
 */
export interface Rejects {
  /** Those that stand against a node, the newest last; one look when there is none. */
  readonly of: (id: string) => readonly Found<RejectRecord>[];
  /**
   * What goes with a decision: one more reject, or none of those that can be read here now. No new one while some controller would
   * not know what it is: then the approval alone says so.
   */
  readonly wishesOf: (id: string, decision: Pick<ApprovalRecord, "state" | "by" | "reason">) => Wish[];
  readonly stop: () => void;
}

export function watchRejects(records: Records): Rejects {
  const standing = new Map<string, Set<string>>();
  const note = (key: string): void => {
    const id = /^node\/([^/]+)\/reject\//.exec(key)?.[1];
    if (id === undefined) return;
    const known = standing.get(id) ?? new Set();
    if (records.replica.get(key) === undefined) known.delete(key);
    else known.add(key);
    if (known.size === 0) standing.delete(id);
    else standing.set(id, known);
  };
  for (const [key] of records.replica.entries("node/")) note(key);
  const stop = records.replica.watch((changed) => {
    for (const key of changed) note(key);
  });
  return {
    of: (id) =>
      [...(standing.get(id) ?? [])]
        .flatMap((key) => records.get("reject", key) ?? [])
        .toSorted((a, b) => (a.at < b.at ? -1 : 1)),
    wishesOf(id, { state, by, reason }) {
      if (state !== "rejected")
        return [...(standing.get(id) ?? [])].map((key) => ({ key, value: undefined, isFree: true }));
      if (commonProtocol(records.replica) < 2) return [];
      return [{ key: keys.node(id).reject(randomUUID()), value: { by, ...defined({ reason }) }, isFree: true }];
    },
    stop,
  };
}
