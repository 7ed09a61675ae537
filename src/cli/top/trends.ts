import type { FleetNode, FleetTrend } from "#tui/ink/fleet/snapshot.ts";

/** The milliseconds of one bar of a graph, and the number of bars. */
const barMs = 30_000;
const bars = 8;

interface Kept {
  /** The number of the last bar, counted from the epoch. */
  bar: number;
  readonly load: number[];
  readonly memory: number[];
}

/** Remembers the load of the nodes since the view was opened: the highest of each half minute. */
export class Trends {
  #kept = new Map<string, Kept>();

  /** Takes the load of the nodes at a moment in milliseconds; nodes that are gone are forgotten. */
  note(nodes: readonly FleetNode[], at: number): void {
    const bar = Math.floor(at / barMs);
    const next = new Map<string, Kept>();
    for (const { id, cpu, memory, usage } of nodes) {
      const kept = this.#kept.get(id) ?? { bar, load: [], memory: [] };
      const isNew = kept.load.length === 0 || kept.bar !== bar;
      add(kept.load, shareOf(usage?.load, cpu), isNew);
      add(kept.memory, shareOf(usage?.memoryUsed, memory), isNew);
      kept.bar = bar;
      next.set(id, kept);
    }
    this.#kept = next;
  }

  of(id: string): FleetTrend | undefined {
    return this.#kept.get(id);
  }
}

function shareOf(used: number | undefined, all: number): number {
  return used === undefined || all <= 0 ? 0 : Math.min(1, Math.max(0, used / all));
}

function add(list: number[], share: number, isNew: boolean): void {
  if (isNew) {
    list.push(share);
    if (list.length > bars) list.shift();
  } else list[list.length - 1] = Math.max(list.at(-1) ?? 0, share);
}
