import { isDeepStrictEqual } from "node:util";
import type { Change } from "#engine/events/event.ts";
import type { RunModel } from "#engine/events/run-model.ts";
import { itemsByNode, type WorkItem } from "./work-item.ts";

/** How two runs differ in one step of one node; `a` is the first run, `b` the second. */
export interface StepDifference {
  readonly node: string;
  readonly stage: string;
  readonly title: string;
  readonly module: string;
  /** `new` and `gone`: only one run has the step. `slower` and `faster`: by twice and by a second at least. */
  readonly what: "new" | "gone" | "outcome" | "changes" | "slower" | "faster";
  readonly a?: StepSide;
  readonly b?: StepSide;
}

/** A step as one of the two runs has it. */
export interface StepSide {
  readonly outcome: string;
  /** Milliseconds. */
  readonly duration?: number;
  readonly changes: readonly Change[];
}

export interface NodeDifference {
  readonly node: string;
  /** The node's outcome in each run; absent where the run has no such node. */
  readonly a?: string;
  readonly b?: string;
}

export interface RunDifference {
  readonly nodes: readonly NodeDifference[];
  readonly steps: readonly StepDifference[];
}

// Smaller differences of time are chance.
const slowerFactor = 2;
const slowerByMs = 1000;

/** The differences of two runs, node by node and step by step. Pure. */
export function diffRuns(a: RunModel, b: RunModel): RunDifference {
  const [before, after] = [workByName(a), workByName(b)];
  const names = [...new Set([...before.keys(), ...after.keys()])];
  return {
    nodes: names.flatMap((node) => diffNode(node, before.get(node)?.outcome, after.get(node)?.outcome)),
    steps: names.flatMap((node) => {
      const [one, other] = [before.get(node), after.get(node)];
      // A node of only one run counts once, not step by step.
      return one && other ? diffSteps(node, one.items, other.items) : [];
    }),
  };
}

interface NodeWork {
  readonly outcome: string;
  readonly items: ReadonlyMap<string, WorkItem>;
}

/** The work of each node by its name. Every run has the bastion, even without actions. */
function workByName(model: RunModel): ReadonlyMap<string, NodeWork> {
  return new Map(
    itemsByNode(model).map(({ node, items }) => [
      node?.name ?? "bastion",
      {
        outcome: node ? (node.outcome ?? "not finished") : "done",
        items: new Map(items.map((item) => [item.key, item])),
      },
    ]),
  );
}

function diffNode(node: string, a: string | undefined, b: string | undefined): readonly NodeDifference[] {
  return a === b ? [] : [{ node, ...(a === undefined ? {} : { a }), ...(b === undefined ? {} : { b }) }];
}

function diffSteps(
  node: string,
  before: ReadonlyMap<string, WorkItem>,
  after: ReadonlyMap<string, WorkItem>,
): readonly StepDifference[] {
  const differences: StepDifference[] = [];
  for (const [key, item] of before) {
    const other = after.get(key);
    const what = other ? compare(item, other) : "gone";
    if (what) differences.push(difference(node, what, item, other));
  }
  for (const [key, item] of after) if (!before.has(key)) differences.push(difference(node, "new", undefined, item));
  return differences;
}

function compare(a: WorkItem, b: WorkItem): StepDifference["what"] | undefined {
  if (a.outcome !== b.outcome) return "outcome";
  if (!isDeepStrictEqual(a.changes, b.changes)) return "changes";
  const [one = 0, other = 0] = [a.duration, b.duration];
  if (other >= one * slowerFactor && other - one >= slowerByMs) return "slower";
  if (one >= other * slowerFactor && one - other >= slowerByMs) return "faster";
  return undefined;
}

function difference(
  node: string,
  what: StepDifference["what"],
  a: WorkItem | undefined,
  b: WorkItem | undefined,
): StepDifference {
  const { stage, title, module } = (b ?? a) as WorkItem;
  return { node, stage, title, module, what, ...(a ? { a: sideOf(a) } : {}), ...(b ? { b: sideOf(b) } : {}) };
}

function sideOf({ outcome, duration, changes }: WorkItem): StepSide {
  return { outcome: outcome ?? "not finished", changes, ...(duration === undefined ? {} : { duration }) };
}
