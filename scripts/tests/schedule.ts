import type { Job, JobClass } from "./suites.ts";

/** Share of a core that a job of a class keeps busy, and how many of the class go at once. */
const shares: Readonly<Record<JobClass, { readonly share: number; readonly slots: number }>> = {
  processor: { share: 1, slots: Infinity },
  machine: { share: 1, slots: 1 },
  waiting: { share: 0.34, slots: 6 },
};

/** Seconds that no job takes. */
const day = 86_400;

/**
 * The job that starts next, or none as long as the machine is full: an emulated machine before all others, since they take
 * longest, and one at a time as long as other jobs wait; then the longest that has room. `cores` may be kept busy, and half
 * a core more.
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
