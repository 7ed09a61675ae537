import type { FleetNode, FleetTrend } from "#tui/ink/fleet/snapshot.ts";

/** The milliseconds of each bar in a graph. */
const barMs = 30_000;
/** The maximum number of bars in a graph. */
const maxBars = 8;

interface NodeHistory {
  /** The number of the last bar, counted from the epoch. */
  bar: number;
  readonly load: number[];
  readonly memory: number[];
}

/** Load and memory of each node: the highest share, 0 to 1, in each of the last 8 half minutes in which a controller answered. */
export class Trends {
  #histories = new Map<string, NodeHistory>();

  /** Adds the load of the nodes at `at`, in milliseconds since the epoch; forgets nodes that are gone. */
  note(nodes: readonly FleetNode[], at: number): void {
    const bar = Math.floor(at / barMs);
    const next = new Map<string, NodeHistory>();
    for (const { id, cpu, memory, usage } of nodes) {
      const history = this.#histories.get(id) ?? { bar, load: [], memory: [] };
      const isNew = history.load.length === 0 || history.bar !== bar;
      addToBar(history.load, loadShare(usage?.load, cpu), isNew);
      addToBar(history.memory, loadShare(usage?.memoryUsed, memory), isNew);
      history.bar = bar;
      next.set(id, history);
    }
    this.#histories = next;
  }

  of(id: string): FleetTrend | undefined {
    return this.#histories.get(id);
  }
}

function loadShare(used: number | undefined, all: number): number {
  return used === undefined || all <= 0 ? 0 : Math.min(1, Math.max(0, used / all));
}

function addToBar(list: number[], share: number, isNew: boolean): void {
  if (isNew) {
    list.push(share);
    if (list.length > maxBars) list.shift();
  } else list[list.length - 1] = Math.max(list.at(-1) ?? 0, share);
}
