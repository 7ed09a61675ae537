import type { WorkloadName } from "#support/workload.ts";

/** The name of a contender, which brings the workload to nodes; `local` is kcore without ssh. */
export type Name = "script" | "kcore" | "local" | "ansible" | "mitogen" | "pyinfra";
/** A: from scratch, everything changes. B: again, nothing changes. */
export type Phase = "A" | "B";

/** A workload on so many nodes, behind round trips of so many milliseconds. */
export interface Place {
  readonly work: WorkloadName;
  readonly nodes: number;
  readonly rtt: number;
}

/** One contender at one place: medians of all rounds. */
export interface Cell extends Place {
  readonly contender: Name;
  readonly phase: Phase;
  readonly rounds: number;
  readonly seconds: number;
  /** Seconds of CPU on the bastion: the contender and all that it started. */
  readonly bastion: number;
  /** Seconds of CPU on all targets together, their sshds included. */
  readonly targets: number;
}

/** Figures of one node that are the same in each run. */
export interface Exact {
  readonly work: WorkloadName;
  readonly contender: Name;
  readonly processes: Readonly<Record<Phase, number>>;
  readonly bytes: Readonly<Record<Phase, number>>;
  /** Processes for one more directory, file or link that changes. */
  readonly perChange: number;
}

/** All results of one run of the bench; a figure that was not measured is absent. */
export interface Results {
  readonly date: string;
  readonly machine: string;
  readonly rounds: number;
  readonly cells: readonly Cell[];
  readonly exact: readonly Exact[];
  /** Seconds of kcore alone: a run of a state with nothing to do, which speaks to no node. */
  readonly startUp?: number;
  /** Seconds of a command on so many nodes. */
  readonly exec?: { readonly nodes: number; readonly kcore: number; readonly pssh: number };
  /** The largest process of kcore, in MB at its peak, with so many nodes. */
  readonly memory: readonly { readonly nodes: number; readonly peak: number }[];
}

/** The cell, if it was measured. */
export function cellOf({ cells }: Results, contender: Name, phase: Phase, place: Place): Cell | undefined {
  const isThere = ({ work, nodes, rtt }: Place) => work === place.work && nodes === place.nodes && rtt === place.rtt;
  return cells.find((cell) => cell.contender === contender && cell.phase === phase && isThere(cell));
}
