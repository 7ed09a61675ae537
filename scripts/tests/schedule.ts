import type { Job, JobClass } from "./suites.ts";

/** By class: the share of a core that each job keeps busy, and the number of jobs of the class that can run at once. */
const shares: Readonly<Record<JobClass, { readonly share: number; readonly slots: number }>> = {
  processor: { share: 1, slots: Infinity },
  machine: { share: 1, slots: 1 },
  waiting: { share: 0.34, slots: 6 },
};

/** Seconds, more than any job takes: added to a job's time, they put the job first. */
const day = 86_400;

/**
 * The job that starts next; undefined while no waiting job has room. Jobs that emulate a machine go first, since they take longest, but only
 * one at a time while other jobs wait. Then the longest job goes first. A job has room if the busy share stays within `cores` plus a half.
 */
export function nextJob(waiting: readonly Job[], running: readonly Job[], cores: number): Job | undefined {
  const busy = running.reduce((sum, job) => sum + shares[job.class].share, 0);
  const onlyMachinesWait = waiting.every((job) => job.class === "machine");
  const hasRoom = (job: Job): boolean => {
    const { share } = shares[job.class];
    const slots = onlyMachinesWait ? cores : shares[job.class].slots;
    const alike = running.filter((other) => other.class === job.class).length;
    return running.length === 0 || (alike < slots && busy + share <= cores + 0.5);
  };
  const first = (job: Job): number => job.known + (job.class === "machine" ? day : 0);
  return waiting.filter(hasRoom).toSorted((a, b) => first(b) - first(a))[0];
}
