import type { NodeOutcome, Outcome, RunEvent } from "#engine/events/event.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { withoutWave } from "./work-item.ts";

/** Statistics of several runs by step and by node; times are milliseconds. Plain JSON. */
export interface StatsOfRuns {
  readonly steps: readonly StepStats[];
  readonly nodes: readonly NodeStats[];
}

/** A step by its title and module, in any stage. Actions on the bastion count as steps of the node that they are taken for. */
export interface StepStats extends Times {
  readonly title: string;
  readonly module: string;
  /** The step failed and succeeded on one and the same node. */
  readonly flaky: boolean;
  readonly longest?: number;
  /** The node of the longest end. */
  readonly longestOn?: string;
  /** The run of the longest end. */
  readonly longestIn?: string;
  readonly nodes: readonly ({ readonly node: string } & Omit<Times, "median">)[];
}

interface Times {
  /** The number of ends: in order, changed or failed. */
  readonly times: number;
  readonly failed: number;
  /** The time that half of the ends without failure did not exceed. */
  readonly median?: number;
  /** The time that nine of ten ends without failure did not exceed. */
  readonly usual?: number;
}

/** A node over all runs; `failed` and `unreachable` are numbers of runs. */
export interface NodeStats {
  readonly node: string;
  readonly runs: number;
  readonly failed: number;
  readonly unreachable: number;
  /** The time of the node's steps in one run that half of the runs did not exceed. */
  readonly time?: number;
  readonly slowest?: { readonly title: string; readonly module: string; readonly usual: number };
}

/** The ends of one step on one node, over all runs. */
interface Ends {
  readonly durations: number[];
  failed: number;
}

interface StepTimes {
  readonly title: string;
  readonly module: string;
  readonly nodes: Map<string, Ends>;
  longest?: { readonly duration: number; readonly node: string; readonly run: string };
}

interface NodeTimes {
  /** The time of the node's steps, by run. */
  readonly times: Map<string, number>;
  failed: number;
  unreachable: number;
}

const countedOutcomes: ReadonlySet<Outcome> = new Set(["ok", "changed", "failed"]);

/** Collects statistics from the events of one run after the other. */
export class RunStats {
  readonly #steps = new Map<string, StepTimes>();
  readonly #nodes = new Map<string, NodeTimes>();
  #run = "";

  /** Begins a run: the next events belong to it. */
  begin(run: string): void {
    this.#run = run;
  }

  add(event: RunEvent): void {
    switch (event.type) {
      case "step.finished": {
        const { node, title, module } = event;
        return this.#addEnd(node, title, module, event);
      }
      case "action.finished": {
        const { item = "bastion", stage, action } = event;
        return this.#addEnd(item, withoutWave(stage), action, event);
      }
      case "node.finished":
        return this.#addNodeEnd(event.node, event.outcome);
      default:
    }
  }

  /** The statistics of all steps; the step with the longest usual time comes first. */
  steps(): readonly StepStats[] {
    return [...this.#steps.values()].map(stepStats).toSorted((a, b) => (b.usual ?? -1) - (a.usual ?? -1));
  }

  /** The statistics so far; nodes are sorted by name. */
  result(): StatsOfRuns {
    const nodes = [...this.#nodes].map(([node, { times, failed, unreachable }]) => {
      const own = [...this.#steps.values()].map(({ title, module, nodes: ends }) => ({
        title,
        module,
        usual: ninthOfTen(ends.get(node)?.durations ?? []) ?? -1,
      }));
      const [slowest] = own.filter(({ usual }) => usual >= 0).toSorted((a, b) => b.usual - a.usual);
      const time = median([...times.values()]);
      return { node, runs: times.size, failed, unreachable, ...omitUndefined({ time, slowest }) };
    });
    return {
      steps: this.steps(),
      nodes: nodes.toSorted((a, b) => a.node.localeCompare(b.node, "en", { numeric: true })),
    };
  }

  #addEnd(
    node: string,
    title: string,
    module: string,
    { outcome, duration = 0 }: { readonly outcome: Outcome; readonly duration?: number },
  ): void {
    if (!countedOutcomes.has(outcome)) return;
    const { times } = this.#nodeOf(node);
    times.set(this.#run, (times.get(this.#run) ?? 0) + duration);
    const step = getOrAdd(this.#steps, JSON.stringify([title, module]), (): StepTimes => ({
      title,
      module,
      nodes: new Map(),
    }));
    const ends = getOrAdd(step.nodes, node, () => ({ durations: [], failed: 0 }));
    if (outcome === "failed") {
      ends.failed += 1;
      return;
    }
    ends.durations.push(duration);
    if (duration > (step.longest?.duration ?? -1)) step.longest = { duration, node, run: this.#run };
  }

  #addNodeEnd(name: string, outcome: NodeOutcome): void {
    if (outcome === "not-started") return;
    const node = this.#nodeOf(name);
    node.times.set(this.#run, node.times.get(this.#run) ?? 0);
    if (outcome === "failed") node.failed += 1;
    if (outcome === "unreachable") node.unreachable += 1;
  }

  #nodeOf(name: string): NodeTimes {
    return getOrAdd(this.#nodes, name, () => ({ times: new Map(), failed: 0, unreachable: 0 }));
  }
}

function stepStats({ title, module, nodes, longest }: StepTimes): StepStats {
  const all = [...nodes.values()];
  const { times, failed, usual } = timesOf(all);
  return {
    title,
    module,
    times,
    failed,
    flaky: all.some((ends) => ends.failed > 0 && ends.durations.length > 0),
    ...omitUndefined({
      median: median(all.flatMap(({ durations }) => durations)),
      usual,
      longest: longest?.duration,
      longestOn: longest?.node,
      longestIn: longest?.run,
    }),
    nodes: [...nodes].map(([node, ends]) => ({ node, ...timesOf([ends]) })),
  };
}

function timesOf(all: readonly Ends[]): Omit<Times, "median"> {
  const durations = all.flatMap((ends) => ends.durations);
  const failed = all.reduce((sum, ends) => sum + ends.failed, 0);
  return { times: durations.length + failed, failed, ...omitUndefined({ usual: ninthOfTen(durations) }) };
}

function getOrAdd<Value>(map: Map<string, Value>, key: string, make: () => Value): Value {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}

/** The value that nine of ten values do not exceed; undefined for an empty list. */
export function ninthOfTen(values: readonly number[]): number | undefined {
  return quantile(values, 0.9);
}

/** The value that half of the values do not exceed; undefined for an empty list. */
export function median(values: readonly number[]): number | undefined {
  return quantile(values, 0.5);
}

/** The value that this share of the values, 0 to 1, does not exceed; undefined for an empty list. */
export function quantile(values: readonly number[], share: number): number | undefined {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)];
}
