import { isDeepStrictEqual } from "node:util";
import type { AcceptedBodyOf, AnswerOf } from "#api/methods.ts";
import { fenceOf, stepOf, type Order } from "#rollout/order.ts";
import { workStates, type Report, type NodeAssignment } from "#rollout/records.ts";
import type { Records } from "../cluster/records.ts";
import { Busy } from "../cluster/refused.ts";
import { keys } from "../cluster/registers.ts";
import type { ReplicaTimers } from "../replica/replica-ports.ts";
import { limitRate } from "../server/rate.ts";
import { isUnderWay, type UpdateIndex, type UpdateRecords } from "./update-records.ts";

/** The longest time for which a request waits for an order, ms: less than its client's limit. */
const holdMs = 10_000;

/** The rate of a node's reports: a rollout needs about ten, and more would fill the journal. */
const reportRate = { perSecond: 0.5, burst: 40 } as const;

interface ExchangeParts {
  readonly records: Records;
  readonly index: UpdateIndex;
  readonly monotonic: () => number;
  readonly timers: Pick<ReplicaTimers, "after">;
}

export type Exchange = ReturnType<typeof openExchange>;

/** Delivers orders to nodes and stores their reports, on any controller, owner or not. */
export function openExchange({ records, index, monotonic, timers }: ExchangeParts) {
  const mayReport = limitRate(reportRate, monotonic);
  /** By node: the requests that wait for its next order. */
  const waiting = new Map<string, Set<() => void>>();
  const unwatch = records.replica.watch((changed) => {
    for (const key of changed) {
      const node = /^update\/[^/]+\/node\/([^/]+)$/.exec(key)?.[1];
      if (node === undefined) continue;
      for (const wake of waiting.get(node) ?? []) wake();
    }
  });
  const wait = (node: string): Promise<void> =>
    new Promise((resolve) => {
      const wakers = waiting.get(node) ?? new Set();
      waiting.set(node, wakers);
      const wake = (): void => {
        cancel();
        wakers.delete(wake);
        if (wakers.size === 0) waiting.delete(node);
        resolve();
      };
      const cancel = timers.after(holdMs, wake);
      wakers.add(wake);
    });
  /** Whether a report is newer than the stored one, and of a node that the update has assigned (a row). */
  const isNews = ({ fence, epoch }: Report, node: string): boolean => {
    const update = index.read(fence.name);
    return update?.rows.has(node) === true && (update.reports.get(node)?.epoch ?? 0) < epoch;
  };
  const concerns = (node: string): boolean => orderFor(index, node) !== undefined || isAtWork(index, node);
  return {
    /** Whether a rollout concerns this node: it has an order, or its latest report is of work under way. */
    concerns,
    /**
     * Stores a node's report. Answers as soon as there is an order that the node does not know, after 10 s at the latest; at
     * once if no rollout concerns the node. @throws Busy when the node reports too often; Refused when the report cannot be stored
     */
    async exchange(
      node: string,
      { report, known }: AcceptedBodyOf<"exchangeUpdate">,
    ): Promise<AnswerOf<"exchangeUpdate">> {
      if (report && isNews(report, node)) {
        if (!mayReport(node)) throw new Busy(429, `node ${node} says too much about an update`, 2);
        await records.put([{ key: keys.update(report.fence.name).report(node), value: report }]);
      }
      let order = orderFor(index, node);
      if (order ? isDeepStrictEqual(order.fence, known) : isAtWork(index, node)) {
        await wait(node);
        order = orderFor(index, node);
      }
      const isOrder = order !== undefined && !isDeepStrictEqual(order.fence, known);
      return { concerned: concerns(node), ...(isOrder ? { order } : {}) };
    },
    stop(): void {
      unwatch();
      for (const wakers of waiting.values()) for (const wake of wakers) wake();
    },
  };
}

/** The node's order: the order of a rollout under way, or else the last order of an ended one, if the node has not confirmed it. */
function orderFor(index: UpdateIndex, node: string): Order | undefined {
  let last: Order | undefined;
  for (const update of index.all()) {
    const row = update.rows.get(node);
    if (!row || !isOfOwner(update, row)) continue;
    const order = orderOf(update, row);
    if (isUnderWay(update)) return order;
    if (order && !isDeepStrictEqual(order.fence, update.reports.get(node)?.fence)) last = order;
  }
  return last;
}

/** Whether the node's latest report is of work under way. Such a node's next report is needed even after its update has ended. */
function isAtWork(index: UpdateIndex, node: string): boolean {
  let latest: Report | undefined;
  for (const { reports } of index.all()) {
    const report = reports.get(node);
    if (report && report.epoch > (latest?.epoch ?? 0)) latest = report;
  }
  return latest !== undefined && workStates.has(latest.state);
}

function isOfOwner({ owner, head }: UpdateRecords, row: NodeAssignment): boolean {
  return row.generation === head.value.generation && row.epoch === owner.epoch && row.owner === owner.owner;
}

/** The order of a row; undefined if an earlier version wrote the owner without a signature, until a takeover signs one. */
function orderOf({ name, head, owner }: UpdateRecords, row: NodeAssignment): Order | undefined {
  if (!owner.signed) return undefined;
  return {
    fence: fenceOf(name, row),
    step: stepOf(row.phase),
    signed: head.value.signed,
    ownership: owner.signed,
  };
}
