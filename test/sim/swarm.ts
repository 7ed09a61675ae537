import type { Random } from "#support/random.ts";

/** The faults of a seed, and their frequency. Seeds without some faults find other bugs than seeds with all (Groce et al., “Swarm testing”, 2012). */
export interface Swarm {
  readonly nodes: number;
  readonly joiners: number;
  /** The time with faults, in virtual ms. */
  readonly duration: number;
  /** Mean milliseconds between two writes of the whole cluster. */
  readonly writeEvery: number;
  readonly keys: number;
  readonly drop: number;
  readonly duplicate: number;
  readonly reorder: boolean;
  readonly slow: number;
  readonly partitions: boolean;
  readonly oneWay: boolean;
  readonly halfOpen: boolean;
  readonly crashes: boolean;
  readonly pauses: boolean;
  readonly losses: boolean;
  readonly restores: boolean;
  readonly slowSync: boolean;
  readonly fullDisks: boolean;
  readonly brokenDisks: boolean;
  readonly jumps: boolean;
  /** The resolution of wall clocks in milliseconds. */
  readonly grain: number;
  readonly snapshots: boolean;
  readonly sponsorCut: boolean;
  /** The most registers of a page. */
  readonly page: number;
  /** The most registers that are merged in one turn of the event loop. */
  readonly slice: number;
  readonly json: boolean;
}

/** Two controllers that write the same keys all the time on slow disks, without faults that prevent agreement. */
export const busy: Partial<Swarm> = {
  nodes: 2,
  joiners: 0,
  keys: 2,
  writeEvery: 60,
  slowSync: true,
  drop: 0,
  partitions: false,
  oneWay: false,
  halfOpen: false,
  crashes: false,
  pauses: false,
  fullDisks: false,
};

export function drawSwarm(random: Random): Swarm {
  const sometimes = (share = 0.5): boolean => random.chance(share);
  const nodes = 2 + random.below(3);
  const drawn: Swarm = {
    nodes,
    joiners: sometimes(0.4) ? 1 + random.below(2) : 0,
    duration: 20_000 + random.below(30_000),
    writeEvery: random.pick([60, 150, 400]),
    keys: random.pick([2, 6, 30]),
    drop: sometimes() ? random.between(0, 0.15) : 0,
    duplicate: sometimes() ? random.between(0, 0.2) : 0,
    reorder: sometimes(),
    slow: sometimes() ? random.between(0, 0.06) : 0,
    partitions: sometimes(),
    oneWay: sometimes(),
    halfOpen: sometimes(0.3),
    crashes: sometimes(0.6),
    pauses: sometimes(0.25),
    losses: nodes > 2 && sometimes(0.25),
    restores: nodes > 2 && sometimes(0.25),
    slowSync: sometimes(),
    fullDisks: sometimes(0.25),
    brokenDisks: sometimes(0.2),
    jumps: sometimes(0.4),
    grain: sometimes(0.3) ? 500 : 1,
    snapshots: sometimes(),
    sponsorCut: sometimes(),
    page: random.pick([2, 5, 20, 1000]),
    slice: random.pick([1, 10, 5_000]),
    json: sometimes(0.1),
  };
  return sometimes(0.15) ? { ...drawn, ...busy } : drawn;
}
