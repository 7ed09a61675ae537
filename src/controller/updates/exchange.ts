import type { AcceptedBodyOf, AnswerOf } from "#api/methods.ts";
import { fenceOf, stepOf, type Order } from "#rollout/order.ts";
import type { Fence, Report, Row } from "#rollout/records.ts";
import type { Records } from "../cluster/records.ts";
import { keys } from "../cluster/registers.ts";
import { readUpdate, updateNames, type UpdateRecords } from "./update-records.ts";

/** A node that waits is answered at the latest after so long, ms; under what its client waits for an answer. */
const holdMs = 10_000;

/** How nodes get their orders, and tell what came of them, whichever controller they speak to. */
export interface Exchange {
  /** Whether a rollout concerns this node. */
  readonly concerns: (node: string) => boolean;
  /** Takes a node's word, and answers when there is an order that it does not know. @throws Refused when it cannot be kept */
  readonly exchange: (node: string, said: AcceptedBodyOf<"exchangeUpdate">) => Promise<AnswerOf<"exchangeUpdate">>;
  readonly stop: () => void;
}

export function openExchange(records: Records): Exchange {
  /** By node: those who wait for its next order. */
  const waiting = new Map<string, Set<() => void>>();
  const unwatch = records.replica.watch((changed) => {
    for (const key of changed) {
      if (!key.startsWith("update/")) continue;
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
        clearTimeout(timer);
        wakers.delete(wake);
        if (wakers.size === 0) waiting.delete(node);
        resolve();
      };
      const timer = setTimeout(wake, holdMs);
      timer.unref();
      wakers.add(wake);
    });
  return {
    concerns: (node) => orderFor(records, node) !== undefined,
    async exchange(node, { report, known }) {
      if (report) await keep(records, node, report);
      let order = orderFor(records, node);
      if (order && isKnown(order.fence, known)) {
        await wait(node);
        order = orderFor(records, node);
      }
      const isNews = order !== undefined && !isKnown(order.fence, known);
      return { concerned: order !== undefined, ...(isNews ? { order } : {}) };
    },
    stop() {
      unwatch();
      for (const wakers of waiting.values()) for (const wake of wakers) wake();
    },
  };
}

/** A node's later word wins, whichever controller heard it; what is older than what stands is not written. */
async function keep(records: Records, node: string, report: Report): Promise<void> {
  const { name } = report.fence;
  if (!readUpdate(records, name)?.rows.has(node)) return;
  const key = keys.update(name).report(node);
  const present = records.value("updateReport", key);
  if (present && present.epoch >= report.epoch) return;
  await records.put([{ key, value: report }]);
}

/** What the node is to do: the row of the rollout that has it now. */
function orderFor(records: Records, node: string): Order | undefined {
  for (const name of updateNames(records)) {
    const row = records.value("updateRow", keys.update(name).row(node));
    if (!row) continue;
    const update = readUpdate(records, name);
    if (update && isGoing(update, row)) return orderOf(update, row);
  }
  return undefined;
}

/** A row of the present owner in a rollout that is not over. */
function isGoing({ progress, owner, head }: UpdateRecords, row: Row): boolean {
  const phase = progress?.value.phase;
  return (
    (phase === "rolling_out" || phase === "rolling_back") &&
    row.generation === head.value.generation &&
    row.epoch === owner.epoch &&
    row.owner === owner.owner
  );
}

function orderOf({ name, head }: UpdateRecords, row: Row): Order {
  return { fence: fenceOf(name, row), step: stepOf(row.phase), signed: head.value.signed };
}

function isKnown(fence: Fence, known: Fence | undefined): boolean {
  return (
    known !== undefined &&
    known.name === fence.name &&
    known.epoch === fence.epoch &&
    known.owner === fence.owner &&
    known.generation === fence.generation &&
    known.seq === fence.seq
  );
}
